//! JSON Patches in responses of the mutating webhook.

use std::borrow::Cow;
use std::collections::BTreeMap;

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, ReplaceOperation};
use serde_json::{Map, Value};

use super::metadata::Metadata;

/// Computes the RFC 6902 patch from `before` to `after`. `None` if they are equal.
///
/// The operations change only the smallest parts that differ, so other fields stay unchanged.
pub fn diff(before: &Value, after: &Value) -> Option<Patch> {
    let patch = json_patch::diff(before, after);
    (!patch.0.is_empty()).then_some(patch)
}

/// A draft of the changed object. The mutators edit it one after another.
///
/// Most mutators change only annotations. The draft stores changed annotations separately, so these mutators do not
/// need a changed copy of the object. [`Draft::to_mut`] makes this copy for other changes.
#[derive(Debug)]
pub struct Draft<'a> {
    original: &'a Value,
    /// Changed annotations, by key. The value is `None` if the annotation is removed.
    annotations: BTreeMap<String, Option<String>>,
    whole: Option<Value>,
}

impl<'a> Draft<'a> {
    /// Creates a draft that equals `original`, with no changes yet.
    pub fn new(original: &'a Value) -> Self {
        Self { original, annotations: BTreeMap::new(), whole: None }
    }

    /// Returns the object with the changes so far.
    pub fn value(&self) -> Cow<'_, Value> {
        match &self.whole {
            Some(whole) => Cow::Borrowed(whole),
            None if self.annotations.is_empty() => Cow::Borrowed(self.original),
            None => Cow::Owned(self.annotated()),
        }
    }

    /// Returns a mutable reference to the whole object. Mutators use it for changes other than annotations. The first
    /// call copies the original.
    pub fn to_mut(&mut self) -> &mut Value {
        if self.whole.is_none() {
            self.whole = Some(self.annotated());
            self.annotations.clear();
        }
        // Does not insert: `whole` was set above.
        self.whole.get_or_insert(Value::Null)
    }

    /// Sets an annotation, or removes it if `text` is `None`.
    pub fn annotate(&mut self, key: &str, text: Option<String>) {
        if let Some(whole) = &mut self.whole {
            return annotate(whole, key, text);
        }
        let now = annotation(self.original, key);
        let same = match (now, &text) {
            (None, None) => true,
            (Some(Value::String(now)), Some(text)) => now == text,
            _ => false,
        };
        if same {
            self.annotations.remove(key);
        } else {
            self.annotations.insert(key.to_owned(), text);
        }
    }

    /// Returns the patch that turns the original object into the changed object; `None` if nothing changed.
    pub fn patch(&self) -> Option<Patch> {
        if let Some(whole) = &self.whole {
            return diff(self.original, whole);
        }
        if self.annotations.is_empty() {
            return None;
        }
        match self.original.get("metadata").and_then(Value::as_object) {
            Some(metadata) => self.operations(metadata.get("annotations")),
            None => diff(self.original, &self.annotated()),
        }
    }

    /// Returns the changed object.
    pub fn into_value(self) -> Value {
        self.value().into_owned()
    }

    fn annotated(&self) -> Value {
        let mut object = self.original.clone();
        for (key, text) in &self.annotations {
            annotate(&mut object, key, text.clone());
        }
        object
    }

    /// Returns the JSON Patch for the changed annotations. `now` is the value of `metadata.annotations` before the
    /// change. The object must have the field `metadata`. Returns `None` if `now` has an invalid type, such as a
    /// string.
    fn operations(&self, now: Option<&Value>) -> Option<Patch> {
        let map = || PointerBuf::from_tokens(["metadata", "annotations"]);
        let set = || self.annotations.iter().filter_map(|(key, text)| Some((key.clone(), text.as_deref()?.into())));
        let operations = match now {
            None | Some(Value::Null) => {
                vec![PatchOperation::Add(AddOperation { path: map(), value: Value::Object(set().collect()) })]
            }
            Some(Value::Object(now)) if self.leaves_none(now) => {
                vec![PatchOperation::Remove(RemoveOperation { path: map() })]
            }
            Some(Value::Object(now)) => {
                self.annotations.iter().map(|(key, text)| operation(key, text.as_deref(), now)).collect()
            }
            // `metadata.annotations` is not an object; the API server rejects the request.
            Some(_) => return None,
        };
        Some(Patch(operations))
    }

    fn leaves_none(&self, now: &Map<String, Value>) -> bool {
        let goes = |key| matches!(self.annotations.get(key), Some(None));
        self.annotations.values().all(Option::is_none) && now.keys().all(goes)
    }
}

fn operation(key: &str, text: Option<&str>, now: &Map<String, Value>) -> PatchOperation {
    let path = PointerBuf::from_tokens(["metadata", "annotations", key]);
    match text {
        None => PatchOperation::Remove(RemoveOperation { path }),
        Some(text) if now.contains_key(key) => PatchOperation::Replace(ReplaceOperation { path, value: text.into() }),
        Some(text) => PatchOperation::Add(AddOperation { path, value: text.into() }),
    }
}

fn annotation<'v>(object: &'v Value, key: &str) -> Option<&'v Value> {
    Metadata::of(object).annotations()?.get(key)
}

/// Sets an annotation of an object, or removes it if `text` is `None`. Changes no annotation if `metadata` or
/// `metadata.annotations` exists but is not an object.
fn annotate(object: &mut Value, key: &str, text: Option<String>) {
    let Some(metadata) = object_at(object, "metadata") else { return };
    match text {
        Some(text) => {
            if let Some(annotations) = object_at(metadata, "annotations") {
                annotations[key] = Value::String(text);
            }
        }
        None => remove_annotation(metadata, key),
    }
}

/// Returns a mutable reference to the object at the member `key`. Creates the object if the member is missing or
/// `null`. `None` if the member is not an object.
fn object_at<'v>(parent: &'v mut Value, key: &str) -> Option<&'v mut Value> {
    let child = parent.as_object_mut()?.entry(key).or_insert(Value::Null);
    if child.is_null() {
        *child = Value::Object(serde_json::Map::new());
    }
    child.is_object().then_some(child)
}

/// Removes an annotation. Also removes the map of annotations if it becomes empty, so that adding and then removing an
/// annotation changes nothing.
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

    /// Changes annotations in a [`Draft`] of an object, and applies the draft's patch to the original object. Checks
    /// that the patched object equals the object in the draft. Also checks that the draft has a patch if and only if
    /// the patched object differs from the original object.
    #[test]
    fn annotation_patches_equal_a_diff_of_objects() {
        let objects = [
            json!({}),
            json!({"metadata": null}),
            json!({"metadata": {"name": "a"}}),
            json!({"metadata": {"annotations": null}}),
            json!({"metadata": {"annotations": {}}}),
            json!({"metadata": {"annotations": {"a/b~c": "1"}}}),
            json!({"metadata": {"annotations": {"a/b~c": "1", "k": "v"}}}),
            json!({"metadata": {"annotations": "none"}}),
            json!({"metadata": "none"}),
        ];
        let edits = [("a/b~c", None), ("a/b~c", Some("2")), ("k", None), ("k", Some("v")), ("new", Some("n"))];
        for object in &objects {
            for first in &edits {
                for second in &edits {
                    let mut draft = Draft::new(object);
                    for (key, text) in [first, second] {
                        draft.annotate(key, text.map(str::to_owned));
                    }
                    let mut patched = object.clone();
                    if let Some(patch) = draft.patch() {
                        json_patch::patch(&mut patched, &patch).unwrap();
                    }
                    let expected = draft.value().into_owned();
                    assert_eq!(patched, expected, "{object} {first:?} {second:?}");
                    assert_eq!(
                        diff(object, &patched).is_some(),
                        draft.patch().is_some(),
                        "{object} {first:?} {second:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn removing_an_annotation_reverts_adding_it() {
        let object = json!({"metadata": {"name": "a"}, "spec": {"unknown": 1}});
        let mut draft = Draft::new(&object);
        draft.annotate("k", Some("v".into()));
        let patch = serde_json::to_value(draft.patch()).unwrap();
        assert_eq!(patch, json!([{"op": "add", "path": "/metadata/annotations", "value": {"k": "v"}}]));
        draft.annotate("k", None);
        assert_eq!(draft.into_value(), object);
    }

    #[test]
    fn combines_annotations_and_other_changes() {
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
    fn returns_no_patch_for_unchanged_objects() {
        let object = json!({"metadata": {"annotations": {"k": "v"}}});
        let mut draft = Draft::new(&object);
        draft.annotate("k", Some("v".into()));
        draft.annotate("absent", None);
        assert_eq!(draft.patch(), None);
    }
}
