//! Two fields `metadata.annotations` in an object, which kustomize merges when it writes annotations.
//!
//! Source: `SetAnnotations` in kustomize's `kyaml/yaml/rnode.go`, which removes the first field, and then sets each annotation
//! in the next one; and `AnnotationSetter` in `kyaml/yaml/kfns.go`, which removes an empty field, and then sets an annotation in the first one.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::resource::Resource;
use crate::kustomize::node::{Entry, Node};

const FIELD: &str = "annotations";
/// How often kustomize writes annotations to store an identity: name, namespace, and kind.
const IDENTITY_WRITES: usize = 3;
/// How often kustomize writes annotations at the end of a build: without origins, and without transformations.
const FINAL_WRITES: usize = 2;

/// Returns the value of each field `metadata.annotations`, if there are several.
pub(super) fn all(resource: &Resource) -> Option<Vec<&Node>> {
    let metadata = resource.node.get("metadata").map(Node::entries).unwrap_or_default();
    let fields = metadata.iter().filter(|entry| &*entry.key == FIELD);
    (fields.clone().count() > 1).then(|| fields.map(|entry| &entry.value).collect())
}

/// Removes empty ones when kustomize stores an identity in the first one.
pub(super) fn store_identity(resource: &mut Resource) {
    if all(resource).is_none() {
        return;
    }
    let Some(metadata) = resource.metadata() else { return };
    for at in 0..IDENTITY_WRITES {
        let fields = metadata.entries().iter().enumerate().filter(|(_, entry)| &*entry.key == FIELD);
        // the first one has a part of the identity after the first write
        let is_empty = |entry: &Entry| entry.value.is_scalar() || entry.value.is_null_or_empty();
        let empty = fields.skip(at.min(1)).find(|(_, entry)| is_empty(entry)).map(|(index, _)| index);
        if let Some((index, entries)) = empty.zip(metadata.entries_mut()) {
            entries.remove(index);
        }
    }
}

/// Merges those with keys that are `kept` at the end of a build, as kustomize does when it removes what it stored. Several fields can
/// remain.
pub(super) fn finish(resource: &mut Resource, kept: impl Fn(&str) -> bool) {
    let first = resource.node.at_path(&["metadata", FIELD]);
    let has_any = resource.has_internal_annotations() || first.is_some_and(|first| !first.entries().is_empty());
    let Some(metadata) = resource.metadata() else { return };
    for _ in 0..usize::from(has_any) + FINAL_WRITES {
        write(metadata, &kept);
    }
}

fn write(metadata: &mut Node, kept: impl Fn(&str) -> bool) {
    let Some(first) = metadata.remove(FIELD) else { return };
    let value = |entry: &Entry| {
        let text = entry.value.shared_text().unwrap_or_else(|| "".into());
        (Arc::clone(&entry.key), Node::string(text).at(entry.value.origin))
    };
    let values: BTreeMap<Arc<str>, Node> = first.entries().iter().filter(|entry| kept(&entry.key)).map(value).collect();
    if values.is_empty() {
        return;
    }
    let mut next = metadata.get(FIELD).filter(|next| next.is_map()).cloned().unwrap_or_else(|| Node::map(Vec::new()));
    for (key, value) in values {
        next.set(&key, value);
    }
    metadata.set(FIELD, next);
}
