//! Merges strategic merge patches as far as possible without schemas.
//!
//! Mappings are merged. The result for lists depends on schemas and merge keys, so a patched list becomes unknown. A
//! patch keeps kind, name and namespace of its target (`Resource.ApplySmPatch`), unless it is allowed to change them.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::keys::{self, BadKey, KeyFault, Unwritable};
use super::object::Object;
use crate::admission::field::Segment;
use crate::kustomize::finding::Site;

/// The effect of a patch on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merged {
    /// The patch changes fields.
    Changed,
    /// The patch deletes the object.
    Deleted,
    /// It merges a mapping into another type, or replaces everything: the result is unknown.
    Unsure,
}

/// Applies a patch from `site`, with keys that kustomize cannot write, to an object.
pub fn apply_with(object: &mut Object, patch: &Value, bad: &[BadKey], site: &Site) -> Merged {
    let taken: Vec<_> = bad.iter().filter_map(|key| taken(object, patch, key, site)).collect();
    let merged = apply(object, patch);
    if merged == Merged::Changed {
        keep(object, patch);
        for (key, sure) in taken {
            if !sure {
                object.invalidate(&key.pointer);
            }
            object.unwritable_mut().push(key);
        }
    }
    merged
}

/// Returns a bad key of a patch that is copied into the object, and whether that is certain: an existing key of the
/// object stays.
fn taken(object: &Object, patch: &Value, key: &BadKey, site: &Site) -> Option<(Unwritable, bool)> {
    let pointer = keys::pointer(&key.path);
    let is_removed = patch.pointer(&pointer).is_none_or(Value::is_null);
    let is_there = object.raw().pointer(&pointer).is_some();
    let in_list = key.path.segments().iter().any(|segment| matches!(segment, Segment::Index(_)));
    let sure = key.fault == KeyFault::NotText && !in_list;
    if sure && (is_removed || is_there) {
        return None;
    }
    Some((Unwritable { pointer, fault: key.fault, site: Arc::new(site.clone()) }, sure))
}

/// Updates duplicate keys: a patch changes or removes one of them.
fn keep(object: &mut Object, patch: &Value) {
    let twice = object.unwritable().iter().filter(|key| key.fault == KeyFault::Twice);
    let touched: Vec<_> =
        twice.filter(|key| patch.pointer(&key.pointer).is_some()).map(|key| key.pointer.clone()).collect();
    touched.iter().for_each(|pointer| object.invalidate(pointer));
}

/// Applies a patch to the content of an object.
pub fn apply(object: &mut Object, patch: &Value) -> Merged {
    match patch["$patch"].as_str() {
        Some("delete") => return Merged::Deleted,
        Some(_) => return Merged::Unsure,
        None => {}
    }
    let mut uncertain_values = Vec::new();
    let Some(members) = patch.as_object() else { return Merged::Unsure };
    let Some(content) = object.raw_mut().as_object_mut() else { return Merged::Unsure };
    let clean = merge(content, members, "", &mut uncertain_values);
    for pointer in &uncertain_values {
        object.invalidate(pointer);
    }
    if clean { Merged::Changed } else { Merged::Unsure }
}

fn merge(
    content: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    at: &str,
    uncertain_values: &mut Vec<String>,
) -> bool {
    let mut clean = true;
    for (key, value) in patch {
        let pointer = || keys::below(at, key);
        if key.starts_with('$') {
            uncertain_values.push(at.to_owned());
            continue;
        }
        match (content.get_mut(key), value) {
            (_, Value::Null) => {
                content.remove(key);
            }
            (Some(Value::Object(old)), Value::Object(new)) => clean &= merge(old, new, &pointer(), uncertain_values),
            (None | Some(Value::Null), Value::Object(new)) => {
                let mut fresh = Map::new();
                clean &= merge(&mut fresh, new, &pointer(), uncertain_values);
                content.insert(key.clone(), Value::Object(fresh));
            }
            (Some(Value::Array(_)) | None | Some(Value::Null), Value::Array(_)) => {
                uncertain_values.push(pointer());
                content.insert(key.clone(), value.clone());
            }
            (old, value) if old.as_deref().is_none_or(is_scalar) && is_scalar(value) => {
                content.insert(key.clone(), value.clone());
            }
            _ => {
                uncertain_values.push(pointer());
                clean = false;
            }
        }
    }
    clean
}

fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}
