//! Strategic merge patches, as far as they can be followed without schemas.
//!
//! Mappings are merged; what happens to lists depends on schemas and merge keys, so that a list that a patch touches is
//! not known from there on. A patch keeps kind, name and namespace of what it is applied to
//! (`Resource.ApplySmPatch`), unless it is allowed to change them.

use serde_json::{Map, Value};

use super::object::Object;

/// What a patch does to an object as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merged {
    /// It changes fields.
    Changed,
    /// It deletes the object.
    Deleted,
    /// It merges a mapping into something else, or replaces all: what follows is not known.
    Unsure,
}

/// Applies a patch to the content of an object.
pub fn apply(object: &mut Object, patch: &Value) -> Merged {
    match patch["$patch"].as_str() {
        Some("delete") => return Merged::Deleted,
        Some(_) => return Merged::Unsure,
        None => {}
    }
    let mut fuzzy = Vec::new();
    let Some(members) = patch.as_object() else { return Merged::Unsure };
    let Some(content) = object.raw_mut().as_object_mut() else { return Merged::Unsure };
    let clean = merge(content, members, "", &mut fuzzy);
    for pointer in &fuzzy {
        object.blur(pointer);
    }
    if clean { Merged::Changed } else { Merged::Unsure }
}

fn merge(content: &mut Map<String, Value>, patch: &Map<String, Value>, at: &str, fuzzy: &mut Vec<String>) -> bool {
    let mut clean = true;
    for (key, value) in patch {
        let pointer = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        if key.starts_with('$') {
            fuzzy.push(at.to_owned());
            continue;
        }
        match (content.get_mut(key), value) {
            (_, Value::Null) => {
                content.remove(key);
            }
            (Some(Value::Object(old)), Value::Object(new)) => clean &= merge(old, new, &pointer, fuzzy),
            (None | Some(Value::Null), Value::Object(new)) => {
                let mut fresh = Map::new();
                clean &= merge(&mut fresh, new, &pointer, fuzzy);
                content.insert(key.clone(), Value::Object(fresh));
            }
            (Some(Value::Array(_)) | None | Some(Value::Null), Value::Array(_)) => {
                fuzzy.push(pointer);
                content.insert(key.clone(), value.clone());
            }
            (old, value) if old.as_deref().is_none_or(is_scalar) && is_scalar(value) => {
                content.insert(key.clone(), value.clone());
            }
            _ => {
                fuzzy.push(pointer);
                clean = false;
            }
        }
    }
    clean
}

fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}
