//! Merges a value with the existing value at a path.

use serde_json::{Map, Value};

use super::Path;
use super::error::PathError;
use crate::go::type_of;

/// The options for merging a value with the existing value at its path.
///
/// Source: `MergeOptions` of crossplane-runtime's `apis/common/v1`, which configures the library mergo.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct MergeOptions {
    /// Whether existing values are kept. An existing value is replaced in any case if it is empty: `0`, `""`, `false`,
    /// `null`, `{}` or `[]`.
    pub keep_map_values: bool,
    /// Whether the elements of a new list are appended to the existing list. If the lists are at the path itself, only
    /// elements that the existing list does not contain are appended. If the lists are in fields below the path, all
    /// elements are appended.
    pub append_slice: bool,
}

pub(super) fn merge(
    path: &Path,
    object: &mut Value,
    value: Value,
    options: Option<MergeOptions>,
) -> Result<(), PathError> {
    let Some(options) = options else { return path.set(object, value) };
    let there = match path.get(object) {
        Ok(there) => there,
        Err(error) if error.is_not_found() => return path.set(object, value),
        Err(error) => return Err(error),
    };
    if there.is_null() || value.is_null() {
        return path.set(object, value);
    }
    let merged = match without_known(value, there, options) {
        // Without new elements, upstream's list is nil, and a nil slice appended to an empty one is nil.
        Value::Array(new) if options.append_slice && new.is_empty() && is_empty_list(there) => Value::Null,
        value => options.merged(there.clone(), value)?,
    };
    path.set(object, merged)
}

/// Removes from the new list `value` the elements that the existing list `there` already has. Returns `value` unchanged
/// if `options` does not append lists, or if one of the two values is not a list.
fn without_known(value: Value, there: &Value, options: MergeOptions) -> Value {
    match (value, there) {
        (Value::Array(new), Value::Array(known)) if options.append_slice => {
            let known: std::collections::HashSet<&Value> = known.iter().collect();
            Value::Array(new.into_iter().filter(|item| !known.contains(item)).collect())
        }
        (value, _) => value,
    }
}

impl MergeOptions {
    /// Merges `value` into the existing value `there`. The recursion depth is at most the depth of the shallower value.
    /// Fails if a list would be appended to a value that is not a list.
    fn merged(self, there: Value, value: Value) -> Result<Value, PathError> {
        match (there, value) {
            // Upstream skips null members, and then treats the target as still empty.
            (Value::Object(there), value @ Value::Object(_)) if there.is_empty() && has_only_nulls(&value) => Ok(value),
            (Value::Object(there), Value::Object(value)) => self.members(there, value).map(Value::Object),
            (Value::Array(mut there), Value::Array(mut value)) if self.append_slice => {
                there.append(&mut value);
                Ok(Value::Array(there))
            }
            (there, Value::Array(_)) if self.append_slice && !there.is_null() => {
                Err(PathError::Append { found: type_of(&there) })
            }
            (there, _) if self.keep_map_values && !is_empty(&there) => Ok(there),
            (_, value) => Ok(value),
        }
    }

    fn members(
        self,
        mut there: Map<String, Value>,
        value: Map<String, Value>,
    ) -> Result<Map<String, Value>, PathError> {
        for (key, value) in value {
            if self.keep_map_values && value.is_null() {
                continue;
            }
            match there.get_mut(&key) {
                Some(slot) => *slot = self.merged(std::mem::take(slot), value)?,
                None => {
                    there.insert(key, value);
                }
            }
        }
        Ok(there)
    }
}

/// Returns whether the Go library mergo, with which Crossplane merges values, treats a value as empty. The empty values
/// are `0`, `""`, `false`, `null`, `[]` and `{}`.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is) => !is,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

fn is_empty_list(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

fn has_only_nulls(value: &Value) -> bool {
    value.as_object().is_some_and(|members| members.values().all(Value::is_null))
}
