//! The parts of an object that the catalog stores, decoded from its JSON text.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::Kind;
use super::decode::{Decoded, decode, decode_start};
use super::parts::Selection;
use crate::admission::json;

/// Maximum length of a name or namespace, in bytes. Kubernetes allows 253.
const MAX_NAME_BYTES: usize = 4096;

/// Capacity that is reserved for the stored parts of an object, in bytes. The stored parts of most objects are smaller,
/// so the text does not grow step by step while it is decoded.
const TYPICAL_BYTES: usize = 1024;

/// An error that states why the catalog cannot store an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{namespace}{}{name}: {problem}", if namespace.is_empty() { "" } else { "/" })]
pub struct Undecodable {
    /// The namespace of the object; empty if the error occurred before the namespace was decoded.
    pub namespace: String,
    /// The name of the object; empty if the error occurred before the name was decoded.
    pub name: String,
    /// The reason why the object cannot be stored. For example, the object is nested too deep.
    pub problem: String,
}

/// The parts of an object that the catalog stores, as JSON text, with its namespace and name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Projection<'t> {
    /// `metadata.namespace`; empty if absent.
    pub namespace: Cow<'t, str>,
    /// `metadata.name`; empty if absent.
    pub name: Cow<'t, str>,
    /// `metadata.resourceVersion`; empty if absent.
    pub(super) resource_version: Cow<'t, str>,
    /// The stored parts of the object, as JSON text. Kind, name and namespace are not included.
    pub(super) text: String,
    /// The stored fields that the indexes read. Name and namespace are not included.
    pub(super) indexed: Map<String, Value>,
}

impl<'t> Projection<'t> {
    /// Decodes the fields of an object that are in `selection`. `text` is the JSON text of the object, and `kind` is
    /// its kind.
    ///
    /// # Errors
    ///
    /// If the text is not a JSON object, if it is nested too deep, or if the name or namespace of the object is too
    /// long.
    pub(super) fn of(kind: &Kind, selection: &Selection, text: &'t str) -> Result<Self, Undecodable> {
        let (projection, ()) = Self::decoded(kind, text.len(), |decoded| decode(selection, text, decoded))?;
        Ok(projection)
    }

    /// Decodes the fields of the object at the start of `text`, like [`Projection::of`]. The text may continue after
    /// the object. Also returns the length of the object in bytes.
    ///
    /// # Errors
    ///
    /// As for [`Projection::of`], and if the text ends before the object ends.
    pub(super) fn of_start(kind: &Kind, selection: &Selection, text: &'t str) -> Result<(Self, usize), Undecodable> {
        let decode = |decoded: &mut Decoded<'t>| decode_start(selection, text, decoded).map_err(String::from);
        Self::decoded(kind, text.len(), decode)
    }

    /// Calls `decode` to decode an object of `kind`. Also returns the result of `decode`. `length` is the length of the
    /// JSON text in bytes.
    fn decoded<T>(
        kind: &Kind,
        length: usize,
        decode: impl FnOnce(&mut Decoded<'t>) -> Result<T, String>,
    ) -> Result<(Self, T), Undecodable> {
        let mut decoded = Decoded { text: String::with_capacity(length.min(TYPICAL_BYTES)), ..Decoded::default() };
        let checked = decode(&mut decoded).and_then(|made| check(&decoded).map(|()| made));
        let Decoded { namespace, name, resource_version, api_version, mut text, indexed, .. } = decoded;
        let made = match checked {
            Ok(made) => made,
            Err(problem) => {
                let short = |text: &str| text.get(..text.floor_char_boundary(100)).unwrap_or_default().to_owned();
                return Err(Undecodable { namespace: short(&namespace), name: short(&name), problem });
            }
        };
        if !api_version.is_empty() && !kind.is_api_version(&api_version) {
            add_api_version(&mut text, &api_version);
        }
        Ok((Self { namespace, name, resource_version, text, indexed }, made))
    }
}

fn check(decoded: &Decoded<'_>) -> Result<(), String> {
    if decoded.name.len().max(decoded.namespace.len()) > MAX_NAME_BYTES {
        return Err(format!("its name has more than {MAX_NAME_BYTES} bytes"));
    }
    if decoded.depth >= json::MAX_DEPTH {
        return Err(format!("it is nested {} or more levels deep", json::MAX_DEPTH));
    }
    Ok(())
}

fn add_api_version(text: &mut String, api_version: &str) {
    let comma = if text == "{}" { "" } else { "," };
    let member = format!("{{\"apiVersion\":{}{comma}", Value::from(api_version));
    text.replace_range(..1, &member);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::decode::LAST_APPLIED;
    use super::super::parts::{EVERYTHING, Part};
    use super::super::{Scope, Storage, selected};
    use super::*;
    use crate::admission::Path;

    const THING: &str = r#"{"apiVersion": "example.org/v1", "kind": "Thing",
        "metadata": {"name": "a", "namespace": "ns", "managedFields": [{"f": 1}], "uid": "u", "labels": {"x": "y"},
                     "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "n\"\\ m"}},
        "spec": {"wanted": [1, {"b": "c d"}], "other": {"deep": [[]]}, "list": [{"name": "one", "more": 1}, 5]}}"#;

    fn projected<'t>(parts: &'static [Path], text: &'t str) -> Result<Projection<'t>, Undecodable> {
        let kind = Kind {
            group: "example.org",
            version: "v1",
            kind: "Thing",
            plural: "things",
            scope: Scope::Namespaced,
            indexes: &[],
            storage: Storage::Parts(parts),
        };
        Projection::of(&kind, &kind.selection(), text)
    }

    #[test]
    fn keeps_declared_parts_and_nothing_else() {
        let kept = projected(&[&["spec", "wanted"], &["metadata", "uid"]], THING).unwrap();
        assert_eq!((&*kept.namespace, &*kept.name), ("ns", "a"));
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

    /// Paths from which the properties select the fields to store, and the fields that indexes read.
    const PATHS: [Path; 7] = [
        &["metadata"],
        &["metadata", "labels"],
        &["metadata", "resourceVersion"],
        &["metadata", "annotations", "a"],
        &["spec"],
        &["spec", "a"],
        &["spec", "*", "b"],
    ];

    fn paths() -> impl Strategy<Value = Vec<Path>> {
        prop::sample::subsequence(&PATHS[..], 0..PATHS.len())
    }

    fn values() -> impl Strategy<Value = serde_json::Value> {
        let scalar = prop_oneof![any::<i64>().prop_map(Value::from), r#"[a-b"\\ ]{0,3}"#.prop_map(Value::from)];
        scalar.prop_recursive(3, 20, 3, |inner| {
            let members =
                prop::collection::btree_map("a|b|labels|annotations|resourceVersion|[\"\\\\\n]é", inner.clone(), 0..4);
            let object = members.prop_map(|members| Value::Object(members.into_iter().collect()));
            prop_oneof![object, prop::collection::vec(inner, 0..3).prop_map(Value::Array)]
        })
    }

    proptest! {
        #[test]
        fn fields_of_indexes_are_those_of_the_stored_text(
            (metadata, spec) in (values(), values()), (stored, indexed) in (paths(), paths()), is_pretty: bool,
        ) {
            let object = serde_json::json!({"metadata": metadata, "spec": spec});
            let text = if is_pretty { serde_json::to_string_pretty(&object).unwrap() } else { object.to_string() };
            let selection = Selection { stored: Part::of(&stored), indexed: Part::of(&indexed) };
            let kept = Projection::of(&super::super::NAMESPACES, &selection, &text).unwrap();
            let parsed = selected::parse(&selection.indexed, &kept.text).unwrap();
            prop_assert_eq!(Value::Object(kept.indexed), parsed);
        }
    }
}
