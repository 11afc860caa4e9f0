//! Decodes the parts of an object that the catalog stores, directly from its JSON text.
//!
//! The decoder reads the object in one pass and does not build a tree of values. It copies the values of these parts as
//! text, and skips the others.

use std::borrow::Cow;
use std::fmt;

use memchr::{memchr, memchr2, memchr3};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::parts::Part;

/// A metadata field that is not stored. The API server writes it for every object, and it is often half of the object.
const MANAGED_FIELDS: &str = "managedFields";
const RESOURCE_VERSION: &str = "resourceVersion";
/// Annotation in which `kubectl apply` records the whole object. The catalog does not store this annotation.
pub(super) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The metadata of a decoded object, and the parts that the catalog stores. After a decoding error, the values are
/// incomplete.
#[derive(Debug, Default)]
pub(super) struct Decoded {
    /// `metadata.namespace`; empty if absent.
    pub(super) namespace: String,
    /// `metadata.name`; empty if absent.
    pub(super) name: String,
    /// `metadata.resourceVersion`; empty if absent.
    pub(super) resource_version: String,
    /// `apiVersion`; empty if absent.
    pub(super) api_version: String,
    /// The parts of the object that the catalog stores, as JSON text. Kind, name and namespace are not included.
    pub(super) text: String,
}

/// Decodes an object from its JSON text, and writes the result to `out`. Decodes only the parts that `part` selects.
///
/// # Errors
///
/// If the text is not a JSON object.
pub(super) fn decode(part: &Part, text: &str, out: &mut Decoded) -> Result<(), String> {
    if !text.trim_start().starts_with('{') {
        return Err("it is not an object".to_owned());
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let write = Write { part, place: Place::Root, out };
    write.deserialize(&mut deserializer).map_err(|error| error.to_string())?;
    deserializer.end().map_err(|error| error.to_string())
}

/// The position of the decoder in an object: the whole object, its metadata, its annotations, or any other value.
/// Metadata and annotations have members that are never stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Metadata,
    Annotations,
    Below,
}

/// How a member of an object is decoded: skipped, copied, or decoded further.
enum Member<'p> {
    Skip,
    ApiVersion,
    Namespace,
    Name,
    /// The member is `metadata.resourceVersion`. Its value is always written to `Decoded::resource_version`. If
    /// `is_kept` is true, it also becomes part of `Decoded::text`, because the catalog stores this field.
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

/// A serde visitor that copies selected fields of a JSON value to `out`, as JSON text. `part` selects the fields.
struct Write<'p, 'o> {
    part: &'p Part,
    place: Place,
    out: &'o mut Decoded,
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

/// Appends a JSON text to `out`, without the white space between its tokens.
fn copy_compact(json: &str, out: &mut String) {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let (bytes, mut from, mut at) = (json.as_bytes(), 0, 0);
    let has_blanks = || memchr3(b' ', b'\t', b'\n', bytes).or_else(|| memchr(b'\r', bytes)).is_some();
    // There is no white space around a string. The white space inside it is copied.
    if bytes.first() == Some(&b'"') || !has_blanks() {
        out.push_str(json);
        return;
    }
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

/// Returns the position after the string whose opening quote is at `at`.
fn end_of_string(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        match memchr2(b'"', b'\\', rest) {
            Some(found) if rest.get(found) == Some(&b'"') => return at + found + 1,
            Some(found) => at += found + 2,
            None => return bytes.len(),
        }
    }
}

/// The key of a JSON member, borrowed from the text unless it contains escapes.
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
