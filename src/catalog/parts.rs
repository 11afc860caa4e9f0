//! The parts of an object that the catalog keeps, and decoding JSON straight into them.
//!
//! A kind declares paths ([`Storage`](super::Storage)). An object is decoded in one pass over its JSON text: values that no path
//! reaches are skipped, values that a path names are copied as text. No tree of values is built on the way.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Kind;
use crate::admission::{Path, json};

/// In a path: every member of an object, or every item of a list.
pub const EVERY: &str = "*";
/// The paths of everything, but for `managedFields` and the last applied configuration.
pub(super) const EVERYTHING: &[Path] = &[&[EVERY]];

/// Written for every object by the API server and read by no rule; often half of the object.
const MANAGED_FIELDS: &str = "managedFields";
const RESOURCE_VERSION: &str = "resourceVersion";
/// A copy of the whole object that `kubectl apply` keeps for itself.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The longest name or namespace, in bytes. Kubernetes allows 253.
const MAX_NAME_BYTES: usize = 4096;

/// A tree of the paths that a kind declares.
#[derive(Debug)]
pub(super) enum Part {
    /// Everything below.
    Whole,
    /// Parts of these members.
    Members(Vec<(&'static str, Part)>),
}

static ALL: Part = Part::Whole;

impl Part {
    /// Returns the tree of `paths`.
    pub(super) fn of(paths: &[Path]) -> Self {
        let mut root = Self::Members(Vec::new());
        paths.iter().for_each(|path| root.add(path));
        root
    }

    fn add(&mut self, path: &[&'static str]) {
        let Self::Members(members) = self else { return };
        let Some((first, rest)) = path.split_first() else {
            *self = Self::Whole;
            return;
        };
        match members.iter_mut().find(|(key, _)| key == first) {
            Some((_, part)) => part.add(rest),
            None => {
                let mut part = Self::Members(Vec::new());
                part.add(rest);
                members.push((*first, part));
            }
        }
    }

    fn member(&self, key: &str) -> Option<&Self> {
        let Self::Members(members) = self else { return Some(&ALL) };
        let named = members.iter().find(|(name, _)| *name == key);
        named.or_else(|| members.iter().find(|(name, _)| *name == EVERY)).map(|(_, part)| part)
    }

    /// Returns the part of a list's items. Where members are declared and there is a list, the items are kept whole, so
    /// that readers see the same unexpected value.
    fn item(&self) -> &Self {
        match self {
            Self::Whole => &ALL,
            Self::Members(members) => members.iter().find(|(name, _)| *name == EVERY).map_or(&ALL, |(_, part)| part),
        }
    }
}

/// An object that cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{namespace}{}{name}: {problem}", if namespace.is_empty() { "" } else { "/" })]
pub struct Undecodable {
    /// Its namespace, as far as it was read.
    pub namespace: String,
    /// Its name, as far as it was read.
    pub name: String,
    /// The problem.
    pub problem: String,
}

/// The declared parts of an object, as JSON text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Projection {
    /// `metadata.namespace`; empty without.
    pub namespace: String,
    /// `metadata.name`; empty without.
    pub name: String,
    /// `metadata.resourceVersion`; empty without.
    pub(super) resource_version: String,
    /// A JSON object with the declared parts, without its kind, name and namespace.
    pub(super) text: String,
    /// `apiVersion`, for the comparison with that of the kind.
    api_version: String,
}

impl Projection {
    /// Decodes the declared parts of an object.
    ///
    /// # Errors
    /// When the text is no JSON object, or nested too deep to be read, or its name is too long.
    pub(super) fn of(kind: &Kind, part: &Part, text: &str) -> Result<Self, Undecodable> {
        let mut projection = Self::default();
        let decoded = projection.decode(part, text).and_then(|()| projection.check());
        if let Err(problem) = decoded {
            let Self { mut namespace, mut name, .. } = projection;
            [&mut namespace, &mut name].into_iter().for_each(|text| text.truncate(text.floor_char_boundary(100)));
            return Err(Undecodable { namespace, name, problem });
        }
        if !projection.api_version.is_empty() && projection.api_version != kind.api_version() {
            projection.add_api_version();
        }
        projection.text.shrink_to_fit();
        Ok(projection)
    }

    fn decode(&mut self, part: &Part, text: &str) -> Result<(), String> {
        if !text.trim_start().starts_with('{') {
            return Err("it is no object".to_owned());
        }
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let write = Write { part, place: Place::Root, out: self };
        write.deserialize(&mut deserializer).map_err(|error| error.to_string())?;
        deserializer.end().map_err(|error| error.to_string())
    }

    fn check(&self) -> Result<(), String> {
        if self.name.len().max(self.namespace.len()) > MAX_NAME_BYTES {
            return Err(format!("its name has more than {MAX_NAME_BYTES} bytes"));
        }
        if json::is_too_deep(&self.text) {
            return Err(format!("it is nested deeper than {} levels", json::MAX_DEPTH));
        }
        Ok(())
    }

    /// Manifests in files may be written for another version of the kind.
    fn add_api_version(&mut self) {
        let comma = if self.text == "{}" { "" } else { "," };
        let member = format!("{{\"apiVersion\":{}{comma}", Value::from(self.api_version.as_str()));
        self.text.replace_range(..1, &member);
    }
}

/// The position in an object that determines what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Metadata,
    Annotations,
    Below,
}

/// What is done with a member.
enum Member<'p> {
    Skip,
    ApiVersion,
    Namespace,
    Name,
    /// Read in any case, and kept if it is declared.
    ResourceVersion {
        is_kept: bool,
    },
    Keep(&'p Part, Place),
}

impl Place {
    fn member<'p>(self, part: &'p Part, key: &str) -> Member<'p> {
        let keep = |place| part.member(key).map_or(Member::Skip, |part| Member::Keep(part, place));
        match (self, key) {
            (Self::Root, "apiVersion") => Member::ApiVersion,
            (Self::Root, "kind") => Member::Skip,
            (Self::Root, "metadata") => {
                static NOTHING: Part = Part::Members(Vec::new());
                Member::Keep(part.member(key).unwrap_or(&NOTHING), Self::Metadata)
            }
            (Self::Metadata, "name") => Member::Name,
            (Self::Metadata, "namespace") => Member::Namespace,
            (Self::Metadata, RESOURCE_VERSION) => Member::ResourceVersion { is_kept: part.member(key).is_some() },
            (Self::Metadata, MANAGED_FIELDS) | (Self::Annotations, LAST_APPLIED) => Member::Skip,
            (Self::Metadata, "annotations") => keep(Self::Annotations),
            _ => keep(Self::Below),
        }
    }
}

/// Writes the wanted parts of a value while it is deserialised.
struct Write<'p, 'o> {
    part: &'p Part,
    place: Place,
    out: &'o mut Projection,
}

impl<'de> DeserializeSeed<'de> for Write<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match (self.part, self.place) {
            (Part::Whole, Place::Below) => {
                let raw: &RawValue = serde::Deserialize::deserialize(deserializer)?;
                copy_compact(raw.get(), &mut self.out.text);
                Ok(())
            }
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl Write<'_, '_> {
    fn scalar<E>(self, value: impl Into<Value>) -> Result<(), E> {
        self.out.text.push_str(&value.into().to_string());
        Ok(())
    }
}

impl<'de> Visitor<'de> for Write<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.scalar(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let part = self.part.item();
        self.out.text.push('[');
        let start = self.out.text.len();
        loop {
            let end = self.out.text.len();
            if end > start {
                self.out.text.push(',');
            }
            if items.next_element_seed(Write { part, place: Place::Below, out: self.out })?.is_none() {
                self.out.text.truncate(end);
                break;
            }
        }
        self.out.text.push(']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let Self { part, place, out } = self;
        out.text.push('{');
        let start = out.text.len();
        while let Some(Key(key)) = members.next_key()? {
            match place.member(part, &key) {
                Member::Skip => drop(members.next_value::<IgnoredAny>()?),
                Member::ApiVersion => out.api_version = text(members.next_value()?),
                Member::Namespace => out.namespace = text(members.next_value()?),
                Member::Name => out.name = text(members.next_value()?),
                Member::ResourceVersion { is_kept } => {
                    let version: Value = members.next_value()?;
                    if is_kept {
                        let comma = if out.text.len() > start { "," } else { "" };
                        out.text.push_str(&format!("{comma}\"{RESOURCE_VERSION}\":{version}"));
                    }
                    out.resource_version = text(version);
                }
                Member::Keep(part, place) => {
                    if out.text.len() > start {
                        out.text.push(',');
                    }
                    push_key(&key, &mut out.text);
                    members.next_value_seed(Write { part, place, out })?;
                }
            }
        }
        out.text.push('}');
        Ok(())
    }
}

fn text(value: Value) -> String {
    if let Value::String(text) = value { text } else { String::new() }
}

fn push_key(key: &str, out: &mut String) {
    if key.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        out.extend(["\"", key, "\":"]);
    } else {
        out.push_str(&Value::from(key).to_string());
        out.push(':');
    }
}

/// Copies a JSON text without the blanks between its tokens.
fn copy_compact(json: &str, out: &mut String) {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let (bytes, mut from, mut at) = (json.as_bytes(), 0, 0);
    while let Some(byte) = bytes.get(at) {
        if *byte == b'"' {
            at = end_of_string(bytes, at);
        } else if is_blank(byte) {
            out.push_str(json.get(from..at).unwrap_or_default());
            at += bytes.iter().skip(at).take_while(|byte| is_blank(byte)).count();
            from = at;
        } else {
            at += 1;
        }
    }
    out.push_str(json.get(from..).unwrap_or_default());
}

/// Returns the place behind the string whose first quote is at `at`.
fn end_of_string(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        match memchr::memchr2(b'"', b'\\', rest) {
            Some(found) if rest.get(found) == Some(&b'"') => return at + found + 1,
            Some(found) => at += found + 2,
            None => return bytes.len(),
        }
    }
}

/// The name of a member, borrowed where it has no escapes.
struct Key<'de>(Cow<'de, str>);

impl<'de> serde::Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }

            fn visit_str<E>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Scope, Storage};
    use super::*;

    const THING: &str = r#"{"apiVersion": "example.org/v1", "kind": "Thing",
        "metadata": {"name": "a", "namespace": "ns", "managedFields": [{"f": 1}], "uid": "u", "labels": {"x": "y"},
                     "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "n\"\\ m"}},
        "spec": {"wanted": [1, {"b": "c d"}], "other": {"deep": [[]]}, "list": [{"name": "one", "more": 1}, 5]}}"#;

    fn projected(parts: &'static [Path], text: &str) -> Result<Projection, Undecodable> {
        let kind = Kind {
            group: "example.org",
            version: "v1",
            kind: "Thing",
            plural: "things",
            scope: Scope::Namespaced,
            indexes: &[],
            storage: Storage::Parts(parts),
        };
        Projection::of(&kind, &Part::of(parts), text)
    }

    #[test]
    fn keeps_declared_parts_and_nothing_else() {
        let kept = projected(&[&["spec", "wanted"], &["metadata", "uid"]], THING).unwrap();
        assert_eq!((kept.namespace.as_str(), kept.name.as_str()), ("ns", "a"));
        assert_eq!(kept.text, r#"{"metadata":{"uid":"u"},"spec":{"wanted":[1,{"b":"c d"}]}}"#);
        let kept = projected(&[&["metadata", "annotations"], &["spec", "list", "*", "name"]], THING).unwrap();
        let list = r#""spec":{"list":[{"name":"one"},5]}"#;
        assert_eq!(kept.text, format!(r#"{{"metadata":{{"annotations":{{"note":"n\"\\ m"}}}},{list}}}"#));
    }

    #[test]
    fn whole_objects_lack_only_what_no_rule_reads() {
        let kept = projected(EVERYTHING, THING).unwrap();
        let kept: Value = serde_json::from_str(&kept.text).unwrap();
        let mut whole: Value = serde_json::from_str(THING).unwrap();
        whole.as_object_mut().unwrap().retain(|key, _| key == "metadata" || key == "spec");
        let metadata = whole["metadata"].as_object_mut().unwrap();
        metadata.retain(|key, _| ["uid", "labels", "annotations"].contains(&key.as_str()));
        metadata["annotations"].as_object_mut().unwrap().remove(LAST_APPLIED);
        assert_eq!(kept, whole);
    }

    #[test]
    fn keeps_values_of_unexpected_types() {
        let parts: &[Path] = &[&["spec", "a"], &["status", "b"], &["metadata", "labels", "x"]];
        let text = r#"{"metadata":{"name":7,"labels":null},"spec":"text","status":[1,{"c":2}]}"#;
        let kept = projected(parts, text).unwrap();
        assert_eq!(kept.text, r#"{"metadata":{"labels":null},"spec":"text","status":[1,{"c":2}]}"#);
        assert_eq!(projected(parts, "{\"metadata\":null}").unwrap().text, "{\"metadata\":null}");
    }

    #[test]
    fn keeps_another_version_than_that_of_the_kind() {
        let kept = projected(&[], r#"{"apiVersion":"example.org/v2","metadata":{"name":"a"}}"#).unwrap();
        assert_eq!(kept.text, r#"{"apiVersion":"example.org/v2","metadata":{}}"#);
        assert_eq!(
            projected(&[], r#"{"apiVersion":"example.org/v2"}"#).unwrap().text,
            r#"{"apiVersion":"example.org/v2"}"#
        );
    }

    #[test]
    fn reports_objects_that_cannot_be_stored() {
        for text in ["[]", "7", "{", r#"{"spec":{"a":01}}"#, "{} {}"] {
            assert!(projected(&[], text).is_err(), "{text}");
        }
        let deep = format!(r#"{{"metadata":{{"name":"a"}},"spec":{}{}}}"#, "[".repeat(200), "]".repeat(200));
        assert_eq!(projected(&[&["spec"]], &deep).unwrap_err().name, "a");
        assert!(projected(&[], &deep).is_ok(), "a part that is not kept may be deep");
        let long = format!(r#"{{"metadata":{{"name":"{}"}}}}"#, "ä".repeat(5_000));
        assert!(projected(&[], &long).unwrap_err().to_string().ends_with("bytes"));
    }
}
