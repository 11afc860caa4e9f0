//! Handles objects in which the field `metadata.annotations` occurs several times, or is a list or a string.
//!
//! kustomize accepts such objects, but changes these fields when it writes annotations. This module makes the same
//! changes. Source: two functions of kustomize.
//!
//! - `SetAnnotations` in `kyaml/yaml/rnode.go` removes the first `annotations` field, and adds its annotations to the
//!   second one.
//! - `AnnotationSetter` in `kyaml/yaml/kfns.go` first removes an `annotations` field that is empty, if there is one.
//!   Then it adds an annotation to the first `annotations` field that is left.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::kustomize::node::{Entry, Node};

const FIELD: &str = "annotations";
/// The annotation of local objects. kustomize prints an object with this annotation only if the value of the annotation
/// is `false`.
pub(super) const LOCAL: &str = "config.kubernetes.io/local-config";
const NO_MAPPING: &str = "metadata.annotations is not a mapping";
/// The error for annotations that are a list with an odd number of items.
pub(super) const ODD_LIST: &str = "metadata.annotations is a list, not a mapping";
/// Number of times that kustomize writes the annotations of an object to store one previous identity of the object. It
/// writes the name, the namespace and the kind one after the other.
const IDENTITY_WRITES: usize = 3;
/// Number of times that kustomize writes the annotations of an object at the end of a build. One write removes the
/// annotation with the origin of the object. The other write removes the annotation with the transformers that changed
/// the object.
const FINAL_WRITES: usize = 2;

/// The kinds of data that kustomize has stored in the annotations of an object during a build. Portcullis stores this
/// data in fields of `Resource` instead. So its copy of the annotations can be empty when the annotations in kustomize
/// are not empty.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stored {
    /// Whether kustomize has stored previous identities, prefixes, suffixes or generator options in annotations.
    pub state: bool,
    /// Whether kustomize has stored the origin of the object, or the transformers that changed it, in annotations.
    pub notes: bool,
}

/// Returns whether `metadata` has several fields `annotations`, or a field `annotations` that is a list.
pub(super) fn are_odd(metadata: &Node) -> bool {
    count(metadata) > 1 || metadata.get(FIELD).is_some_and(Node::is_seq)
}

/// Returns whether the annotations in `metadata` are a list with an odd number of items. kustomize reads a list as
/// alternating keys and values, and panics if the last value is missing.
pub(super) fn have_odd_list(metadata: &Node) -> bool {
    metadata.get(FIELD).is_some_and(|annotations| listed(annotations).is_none())
}

/// Returns how many fields named `annotations` the `metadata` of an object contains. There are several if the user
/// repeated the field by mistake.
pub(super) fn count(metadata: &Node) -> usize {
    fields(metadata).count()
}

fn fields(metadata: &Node) -> impl Iterator<Item = (usize, &Node)> {
    let entries = metadata.entries().iter().enumerate();
    entries.filter(|(_, entry)| &*entry.key == FIELD).map(|(at, entry)| (at, &entry.value))
}

/// Returns whether kustomize changes existing annotations of an object, or fails, when it stores the object's previous
/// name as an annotation. This can happen if `metadata` has several fields named `annotations`, or if the first one is
/// empty or not a mapping.
pub(super) fn hinder_storing(metadata: &Node) -> bool {
    count(metadata) > 1 || metadata.get(FIELD).is_some_and(|first| !first.is_map() || is_empty(first))
}

fn is_empty(annotations: &Node) -> bool {
    annotations.is_scalar() || annotations.is_null_or_empty()
}

/// Removes at most three empty fields `annotations` from `metadata`, as kustomize does when it stores a previous
/// identity of an object in the annotations. There are several such fields if the user repeated the field by mistake.
/// This function does not write the identity, because Portcullis stores it in `Resource`.
///
/// `stored` says which data kustomize has already stored in the annotations. If there is such data, the first field
/// does not count as empty.
///
/// # Errors
///
/// If the first `annotations` field is neither a mapping nor null, because kustomize then panics.
pub(super) fn store_identity(metadata: &mut Node, stored: Stored) -> Result<(), &'static str> {
    for at in 0..IDENTITY_WRITES {
        // the first field is not empty if it contains an origin, transformers or other state, or a part of the identity
        // from an earlier write
        let mut others = fields(metadata).skip(usize::from(stored.notes || stored.state || at > 0));
        let empty = others.find(|(_, value)| is_empty(value)).map(|(index, _)| index);
        drop(others);
        if let Some((index, entries)) = empty.zip(metadata.entries_mut()) {
            entries.remove(index);
        }
        if metadata.get(FIELD).is_some_and(|first| !first.is_map() && !first.is_null()) {
            return Err(NO_MAPPING);
        }
    }
    Ok(())
}

/// Returns whether the annotations that kustomize writes for `buildMetadata`, such as the origin of an object, are
/// unpredictable. `metadata` is the metadata of the object. The result is true if `metadata` has several fields named
/// `annotations`, and one of them contains `config.kubernetes.io/local-config`.
pub(super) fn hinder_notes(metadata: &Node) -> bool {
    count(metadata) > 1 && fields(metadata).any(|(_, annotations)| annotations.get(LOCAL).is_some())
}

/// Returns whether kustomize fails when it adds annotations of `buildMetadata`, such as the origin, to an object. If
/// `metadata` has several fields named `annotations`, kustomize removes the first one and writes to the second one.
/// This fails if the second one is neither a mapping nor null.
fn refuse_notes(metadata: &Node) -> bool {
    fields(metadata).nth(1).is_some_and(|(_, second)| !second.is_map() && !second.is_null())
}

/// Merges duplicate fields `annotations` in the `metadata` of an object, as kustomize does at the end of a build. Also
/// converts a list of annotations to a mapping. kustomize merges the first field into the second one, at most three
/// times. So if there are more than four fields, several are left.
///
/// `stored` says which data kustomize has added as annotations during the build, such as previous names of the object.
/// `kept` receives the key of an annotation. If it returns false, the annotation is removed.
///
/// # Errors
///
/// If kustomize fails or panics, for example because the second field is a string.
pub(super) fn finish(metadata: &mut Node, stored: Stored, kept: impl Fn(&str) -> bool) -> Result<(), &'static str> {
    let is_filled = |first: &Node| !first.entries().is_empty() || !first.items().is_empty();
    let has_any = stored.notes || stored.state || metadata.get(FIELD).is_some_and(is_filled);
    // the first field contains the origin and the transformers, so kustomize copies values into the second field
    if stored.notes && refuse_notes(metadata) {
        return Err(NO_MAPPING);
    }
    (0..usize::from(has_any) + FINAL_WRITES).try_for_each(|_| write(metadata, &kept))
}

fn write(metadata: &mut Node, kept: impl Fn(&str) -> bool) -> Result<(), &'static str> {
    let Some(first) = metadata.remove(FIELD) else { return Ok(()) };
    let listed = listed(&first).ok_or(NO_MAPPING)?;
    let entries = first.entries().iter().chain(&listed).filter(|entry| kept(&entry.key));
    let value = |value: &Node| Node::string(value.shared_text().unwrap_or_default()).at(value.origin);
    let values: BTreeMap<_, _> = entries.map(|entry| (Arc::clone(&entry.key), value(&entry.value))).collect();
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

/// Converts a list to mapping entries. kustomize reads a list of annotations as alternating keys and values. `None` if
/// the last key has no value.
pub(super) fn listed(node: &Node) -> Option<Vec<Entry>> {
    let (pairs, []) = node.items().as_chunks() else { return None };
    let entry = |[key, value]: &[Node; 2]| Entry::new(key.shared_text().unwrap_or_default(), value.clone());
    Some(pairs.iter().map(entry).collect())
}
