//! Merging a value with what stands at a path.

use serde_json::{Map, Value};

use super::Path;
use super::error::PathError;
use crate::crossplane::go::type_of;

/// How a value is merged with what stands at its path.
///
/// Source: `MergeOptions` of crossplane-runtime's `apis/common/v1`, which configures the library mergo.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct MergeOptions {
    /// What is there stays, unless it is empty: `0`, `""`, `false`, `null`, `{}` or `[]`.
    pub keep_map_values: bool,
    /// Lists are appended to lists. Elements that the target has already are left out where the target itself is a list,
    /// but not in lists within it.
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
        // Upstream's list without known elements is nil, and a nil slice appended to an empty one is nil again.
        Value::Array(new) if options.append_slice && new.is_empty() && is_empty_list(there) => Value::Null,
        value => options.merged(there.clone(), value)?,
    };
    path.set(object, merged)
}

/// The elements of a list to append that the target does not have.
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
    /// What two values make together. The recursion is as deep as both of them.
    fn merged(self, there: Value, value: Value) -> Result<Value, PathError> {
        match (there, value) {
            // Upstream passes over members that are null, and then finds the target as empty as it was.
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

/// Whether Go's reflection calls a value empty.
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
