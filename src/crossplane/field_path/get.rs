//! Finds the value that a Crossplane field path names in an object.

use serde_json::Value;

use super::error::PathError;
use super::{Segment, text_of};

static NULL: Value = Value::Null;

/// Returns the value in an object at the path with these segments. For an empty path, returns `null`. Fails if the
/// value is missing, or if a parent has the wrong type.
pub(super) fn get<'v>(segments: &[Segment], object: &'v Value) -> Result<&'v Value, PathError> {
    if segments.is_empty() {
        return Ok(&NULL);
    }
    let mut value = object;
    for at in 0..segments.len() {
        value = step(segments, at, value)?;
    }
    Ok(value)
}

/// Returns the field or list element of `value` that the segment `segments[at]` selects. Fails if this field or element
/// is missing, or if `value` has the wrong type.
pub(super) fn step<'v>(segments: &[Segment], at: usize, value: &'v Value) -> Result<&'v Value, PathError> {
    let here = || text_of(&segments[..at]);
    let missing = || PathError::no_such(&segments[..=at]);
    match (&segments[at], value) {
        (Segment::Field(name), Value::Object(members)) => members.get(name).ok_or_else(missing),
        (Segment::Field(_), Value::Null) => Err(PathError::Null { at: here() }),
        (Segment::Field(_), _) => Err(PathError::NotAnObject { at: here() }),
        (Segment::Index(index), Value::Array(items)) => items.get(*index as usize).ok_or_else(missing),
        (Segment::Index(_), _) => Err(PathError::NotAnArray { at: here() }),
    }
}
