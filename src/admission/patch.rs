//! Patches: what a mutating answer carries.

use json_patch::Patch;
use serde_json::Value;

/// The RFC 6902 patch from `before` to `after`; `None` when they are the same.
///
/// Operations name the smallest parts that differ, so unknown fields are left alone.
pub fn diff(before: &Value, after: &Value) -> Option<Patch> {
    let patch = json_patch::diff(before, after);
    (!patch.0.is_empty()).then_some(patch)
}

/// An object on its way through the mutators: the original, and a copy as soon as one of them changes something.
#[derive(Debug)]
pub struct Draft<'a> {
    original: &'a Value,
    changed: Option<Value>,
}

impl<'a> Draft<'a> {
    /// A draft that is still the original.
    pub fn new(original: &'a Value) -> Self {
        Self { original, changed: None }
    }

    /// The object as it stands.
    pub fn value(&self) -> &Value {
        self.changed.as_ref().unwrap_or(self.original)
    }

    /// The object, to be changed.
    pub fn to_mut(&mut self) -> &mut Value {
        self.changed.get_or_insert_with(|| self.original.clone())
    }

    /// Sets an annotation, or takes it away where `text` is `None`. Changes nothing where it says so already.
    pub fn annotate(&mut self, key: &str, text: Option<String>) {
        let now = self.value().get("metadata").and_then(|meta| meta.get("annotations")?.get(key));
        match (now, &text) {
            (None, None) => return,
            (Some(Value::String(now)), Some(text)) if now == text => return,
            _ => {}
        }
        let Some(metadata) = object_at(self.to_mut(), "metadata") else { return };
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
        diff(self.original, self.changed.as_ref()?)
    }

    /// The object as it should be.
    pub fn into_value(self) -> Value {
        self.changed.unwrap_or_else(|| self.original.clone())
    }
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
    use serde_json::json;

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
    fn an_unchanged_object_has_no_patch() {
        let object = json!({"metadata": {"annotations": {"k": "v"}}});
        let mut draft = Draft::new(&object);
        draft.annotate("k", Some("v".into()));
        draft.annotate("absent", None);
        assert_eq!(draft.patch(), None);
    }
}
