//! Patches: what a mutating answer carries.

use std::borrow::Cow;

use json_patch::Patch;
use serde_json::{Value, json};

/// The RFC 6902 patch from `before` to `after`; `None` when they are the same.
///
/// Operations name the smallest parts that differ, so unknown fields are left alone.
pub fn diff(before: &Value, after: &Value) -> Option<Patch> {
    let patch = json_patch::diff(before, after);
    (!patch.0.is_empty()).then_some(patch)
}

/// An object on its way through the mutators: the original, and copies of what they change.
///
/// Mostly that is an annotation. So only the metadata is copied and compared, until something else is to be changed.
#[derive(Debug)]
pub struct Draft<'a> {
    original: &'a Value,
    metadata: Option<Value>,
    whole: Option<Value>,
}

impl<'a> Draft<'a> {
    /// A draft that is still the original.
    pub fn new(original: &'a Value) -> Self {
        Self { original, metadata: None, whole: None }
    }

    /// The object as it stands.
    pub fn value(&self) -> Cow<'_, Value> {
        match (&self.whole, &self.metadata) {
            (Some(whole), _) => Cow::Borrowed(whole),
            (None, None) => Cow::Borrowed(self.original),
            (None, Some(metadata)) => Cow::Owned(with_metadata(self.original.clone(), metadata.clone())),
        }
    }

    /// The object, to be changed.
    pub fn to_mut(&mut self) -> &mut Value {
        let Self { original, metadata, whole } = self;
        whole.get_or_insert_with(|| match metadata.take() {
            Some(metadata) => with_metadata(original.clone(), metadata),
            None => original.clone(),
        })
    }

    /// Sets an annotation, or takes it away where `text` is `None`. Changes nothing where it says so already.
    pub fn annotate(&mut self, key: &str, text: Option<String>) {
        match (self.annotation(key), &text) {
            (None, None) => return,
            (Some(Value::String(now)), Some(text)) if now == text => return,
            _ => {}
        }
        let Some(metadata) = self.metadata_mut() else { return };
        match text {
            Some(text) => {
                if let Some(annotations) = object_at(metadata, "annotations") {
                    annotations[key] = Value::String(text);
                }
            }
            None => remove_annotation(metadata, key),
        }
    }

    /// The patch that makes the original what this draft says; `None` when nothing changed.
    pub fn patch(&self) -> Option<Patch> {
        if let Some(whole) = &self.whole {
            return diff(self.original, whole);
        }
        let only = |metadata: &Value| json!({ "metadata": metadata });
        let before = self.original.get("metadata").map_or_else(|| json!({}), only);
        diff(&before, &only(self.metadata.as_ref()?))
    }

    /// The object as it should be.
    pub fn into_value(self) -> Value {
        self.value().into_owned()
    }

    fn annotation(&self, key: &str) -> Option<&Value> {
        let object = self.whole.as_ref().unwrap_or(self.original);
        let metadata = self.metadata.as_ref().or_else(|| object.get("metadata"));
        metadata?.get("annotations")?.get(key)
    }

    /// The metadata, made where there is none; `None` where something else stands there.
    fn metadata_mut(&mut self) -> Option<&mut Value> {
        let Self { original, metadata, whole: None } = self else { return object_at(self.to_mut(), "metadata") };
        if !original.is_object() {
            return None;
        }
        let now = metadata.get_or_insert_with(|| match original.get("metadata") {
            None | Some(Value::Null) => json!({}),
            Some(metadata) => metadata.clone(),
        });
        now.is_object().then_some(now)
    }
}

fn with_metadata(mut object: Value, metadata: Value) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.insert("metadata".to_owned(), metadata);
    }
    object
}

/// The object that is the member `key`, made where it is missing or null; `None` where something else stands there.
fn object_at<'v>(parent: &'v mut Value, key: &str) -> Option<&'v mut Value> {
    let child = parent.as_object_mut()?.entry(key).or_insert(Value::Null);
    if child.is_null() {
        *child = Value::Object(serde_json::Map::new());
    }
    child.is_object().then_some(child)
}

/// An empty map of annotations goes too, so that taking away undoes adding.
fn remove_annotation(metadata: &mut Value, key: &str) {
    let Some(metadata) = metadata.as_object_mut() else { return };
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    annotations.remove(key);
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotating_is_minimal_and_undone_by_removing() {
        let object = json!({"metadata": {"name": "a"}, "spec": {"unknown": 1}});
        let mut draft = Draft::new(&object);
        draft.annotate("k", Some("v".into()));
        let patch = serde_json::to_value(draft.patch()).unwrap();
        assert_eq!(patch, json!([{"op": "add", "path": "/metadata/annotations", "value": {"k": "v"}}]));
        draft.annotate("k", None);
        assert_eq!(draft.into_value(), object);
    }

    #[test]
    fn annotations_and_other_changes_go_together() {
        let object = json!({"metadata": {"name": "a"}, "spec": {"n": 1}});
        let mut draft = Draft::new(&object);
        draft.annotate("k", Some("v".into()));
        draft.to_mut()["spec"]["n"] = json!(2);
        draft.annotate("l", Some("w".into()));
        let after = json!({"metadata": {"name": "a", "annotations": {"k": "v", "l": "w"}}, "spec": {"n": 2}});
        assert_eq!(*draft.value(), after);
        assert_eq!(draft.patch(), diff(&object, &after));
    }

    #[test]
    fn an_unchanged_object_has_no_patch() {
        let object = json!({"metadata": {"annotations": {"k": "v"}}});
        let mut draft = Draft::new(&object);
        draft.annotate("k", Some("v".into()));
        draft.annotate("absent", None);
        assert_eq!(draft.patch(), None);
    }
}
