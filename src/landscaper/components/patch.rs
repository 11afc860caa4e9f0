//! Creates JSON Patches (RFC 6902) for component descriptors. A patch applies the entries of a
//! ComponentVersionOverwrites object to the component references in a descriptor.
//!
//! A patch tests each value before it replaces or removes the value. So the patch fails if the descriptor has other
//! values than expected. A component reference has no field for its repository context, the location of the component.
//! The patch writes a new repository context into a label of the reference instead. It also removes the digest of a
//! changed reference, because the digest belongs to the original component.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation};
use serde_json::{Value, json};

use super::closure::Step;
use super::descriptor::{Descriptor, REPOSITORY_LABEL, Reference};
use crate::landscaper::component_reference::Attribute;
use crate::landscaper::substitution::Substitution;

/// Returns the JSON Patch that applies a ComponentVersionOverwrites object to the references in a component descriptor.
/// Each of the `steps` contains one of these references before and after the change. The patch is empty if no reference
/// changes.
pub fn of<'s>(descriptor: &Descriptor, steps: impl Iterator<Item = &'s Step>) -> Patch {
    let mut operations = Vec::new();
    for step in steps {
        if let Some(reference) = descriptor.references.get(step.at) {
            operations.extend(operations_of(&descriptor.pointer(step.at), reference, &step.substitution));
        }
    }
    Patch(operations)
}

/// Returns the JSON Patch operations that write a substitution into a component reference. `pointer` is the JSON
/// pointer to the reference in the patched document. `reference` is the reference before the change.
pub fn operations_of(pointer: &str, reference: &Reference, substitution: &Substitution) -> Vec<PatchOperation> {
    let changed: Vec<_> = substitution.changed().collect();
    let mut operations = Vec::new();
    for attribute in [Attribute::ComponentName, Attribute::Version] {
        if changed.contains(&attribute) {
            let (old, new) = (substitution.original.value(attribute), substitution.result.value(attribute));
            let path = format!("{pointer}/{attribute}");
            // A field with an empty value may be missing, and a test of it would fail.
            let is_set = old != "";
            operations.extend(if is_set { vec![test(&path, old), replace(&path, new)] } else { vec![add(&path, new)] });
        }
    }
    if changed.contains(&Attribute::RepositoryContext) {
        operations.extend(label(pointer, reference, substitution.result.value(Attribute::RepositoryContext)));
    }
    if let (false, Some(digest)) = (changed.is_empty(), &reference.digest) {
        let path = format!("{pointer}/digest");
        operations.extend([test(&path, digest.clone()), remove(&path)]);
    }
    operations
}

/// Returns the JSON Patch operations that write `context`, the location of a component, into the label
/// [`REPOSITORY_LABEL`] of a component reference.
fn label(pointer: &str, reference: &Reference, context: Value) -> Vec<PatchOperation> {
    let label = json!({"name": REPOSITORY_LABEL, "value": context});
    match (&reference.repository_context, reference.labels) {
        (Some((at, old)), _) => {
            let path = format!("{pointer}/labels/{at}");
            vec![test(&format!("{path}/value"), old.value().clone()), replace(&path, label)]
        }
        (None, Some(_)) => vec![add(&format!("{pointer}/labels/-"), label)],
        (None, None) => vec![add(&format!("{pointer}/labels"), json!([label]))],
    }
}

/// Parses a JSON pointer. Callers pass only valid pointers. For an invalid pointer, returns the empty pointer, which
/// refers to the whole document.
fn path(pointer: &str) -> PointerBuf {
    PointerBuf::parse(pointer).unwrap_or_default()
}

fn test(pointer: &str, value: Value) -> PatchOperation {
    PatchOperation::Test(TestOperation { path: path(pointer), value })
}

fn replace(pointer: &str, value: Value) -> PatchOperation {
    PatchOperation::Replace(ReplaceOperation { path: path(pointer), value })
}

fn add(pointer: &str, value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path: path(pointer), value })
}

fn remove(pointer: &str) -> PatchOperation {
    PatchOperation::Remove(RemoveOperation { path: path(pointer) })
}
