//! Two fields `metadata.annotations` in an object, which kustomize merges when it writes annotations.
//!
//! Source: `SetAnnotations` in kustomize's `kyaml/yaml/rnode.go`, which removes the first field, and then sets each annotation
//! in the next one; and `AnnotationSetter` in `kyaml/yaml/kfns.go`, which removes an empty field, and then sets an annotation in the first one.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::resource::Resource;
use crate::kustomize::node::Node;

const FIELD: &str = "annotations";
const NO_MAPPING: &str = "metadata.annotations occurs twice, and one of them is no mapping";
/// How often kustomize writes annotations to store an identity: name, namespace, and kind.
const IDENTITY_WRITES: usize = 3;
/// How often kustomize writes annotations at the end of a build: without origins, and without transformations.
const FINAL_WRITES: usize = 2;

/// Returns how many there are.
pub(super) fn count(resource: &Resource) -> usize {
    let metadata = resource.node.get("metadata").map(Node::entries).unwrap_or_default();
    metadata.iter().filter(|entry| &*entry.key == FIELD).count()
}

/// Removes empty ones when kustomize stores an identity in the first one.
///
/// # Errors
///
/// If kustomize panics, because the first one is no mapping.
pub(super) fn store_identity(resource: &mut Resource) -> Result<(), &'static str> {
    let is_empty = |node: &Node| node.is_scalar() || node.is_null_or_empty();
    let first = resource.node.at_path(&["metadata", FIELD]);
    if count(resource) < 2 && !first.is_some_and(is_empty) {
        return Ok(());
    }
    let Some(metadata) = resource.metadata() else { return Ok(()) };
    for at in 0..IDENTITY_WRITES {
        let fields = metadata.entries().iter().enumerate().filter(|(_, entry)| &*entry.key == FIELD);
        // the first one has a part of the identity after the first write
        let empty = fields.skip(at.min(1)).find(|(_, entry)| is_empty(&entry.value)).map(|(index, _)| index);
        if let Some((index, entries)) = empty.zip(metadata.entries_mut()) {
            entries.remove(index);
        }
        if metadata.get(FIELD).is_some_and(|first| !first.is_map() && !first.is_null()) {
            return Err(NO_MAPPING);
        }
    }
    Ok(())
}

/// Merges those with keys that are `kept` at the end of a build, as kustomize does when it removes what it stored. Several fields can
/// remain.
///
/// # Errors
///
/// If kustomize fails or panics, because one of them is no mapping.
pub(super) fn finish(resource: &mut Resource, kept: impl Fn(&str) -> bool) -> Result<(), &'static str> {
    let first = resource.node.at_path(&["metadata", FIELD]);
    let has_notes = resource.source.is_some() || !resource.transformations.is_empty();
    let has_any =
        has_notes || resource.has_internal_annotations() || first.is_some_and(|first| !first.entries().is_empty());
    let Some(metadata) = resource.metadata() else { return Ok(()) };
    (0..usize::from(has_any) + FINAL_WRITES).try_for_each(|_| write(metadata, &kept))
}

fn write(metadata: &mut Node, kept: impl Fn(&str) -> bool) -> Result<(), &'static str> {
    let Some(first) = metadata.remove(FIELD) else { return Ok(()) };
    // kustomize reads a list as keys and values in turn
    let (pairs, []) = first.items().as_chunks() else { return Err(NO_MAPPING) };
    let listed = pairs.iter().map(|[key, value]| (key.shared_text().unwrap_or_default(), value));
    let entries = first.entries().iter().map(|entry| (Arc::clone(&entry.key), &entry.value)).chain(listed);
    let value = |value: &Node| Node::string(value.shared_text().unwrap_or_default()).at(value.origin);
    let values: BTreeMap<Arc<str>, Node> =
        entries.filter(|(key, _)| kept(key)).map(|(key, node)| (key, value(node))).collect();
    if values.is_empty() {
        return Ok(());
    }
    let mut next = match metadata.get(FIELD) {
        Some(next) if next.is_map() => next.clone(),
        Some(next) if !next.is_null() => return Err(NO_MAPPING),
        _ => Node::map(Vec::new()),
    };
    for (key, value) in values {
        next.set(&key, value);
    }
    metadata.set(FIELD, next);
    Ok(())
}
