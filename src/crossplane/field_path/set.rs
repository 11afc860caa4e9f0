//! Writes a value into an object, at a Crossplane field path such as `spec.items[0].name`.

use serde_json::{Map, Value};

use super::error::PathError;
use super::{MAX_DEPTH, MAX_INDEX, Segment, text_of};

/// Writes a value at the path with these segments, and creates missing parents.
///
/// In case of an error, the object is unchanged, because errors can occur only before the first missing parent is
/// created.
pub(super) fn set(segments: &[Segment], object: &mut Value, value: Value) -> Result<(), PathError> {
    check(segments, &value)?;
    let mut target = object;
    for at in 0..segments.len() {
        target = child(segments, at, target)?;
    }
    if !segments.is_empty() {
        *target = value;
    }
    Ok(())
}

/// Checks whether a value may be written to a path. Returns an error if a list index in the path is above `MAX_INDEX`,
/// or if the value would be nested more than `MAX_DEPTH` levels deep in the object. Crossplane only limits the index.
fn check(segments: &[Segment], value: &Value) -> Result<(), PathError> {
    for segment in segments {
        match segment {
            Segment::Index(index) if *index > MAX_INDEX => return Err(PathError::IndexTooHigh { index: *index }),
            _ => {}
        }
    }
    let room = MAX_DEPTH.checked_sub(segments.len());
    match room {
        Some(room) if fits(value, room) => Ok(()),
        _ => Err(PathError::TooDeep { at: text_of(&segments[..segments.len().min(8)]) }),
    }
}

/// Returns whether a value is nested at most `room` levels deep. The function recurses at most `room` times.
pub(super) fn fits(value: &Value, room: usize) -> bool {
    let below = |inner: &Value| room > 0 && fits(inner, room - 1);
    match value {
        Value::Array(items) => items.iter().all(below),
        Value::Object(members) => members.values().all(below),
        _ => true,
    }
}

/// Returns the value to which the segment `segments[at]` leads from `target`. Creates the value if it is missing. In a
/// list, `null` counts as missing. Fails if `target` has the wrong type for the segment.
fn child<'v>(segments: &[Segment], at: usize, target: &'v mut Value) -> Result<&'v mut Value, PathError> {
    let fresh = || match segments.get(at + 1) {
        Some(Segment::Field(_)) => Value::Object(Map::new()),
        Some(Segment::Index(_)) => Value::Array(Vec::new()),
        None => Value::Null,
    };
    match (&segments[at], target) {
        (Segment::Field(name), Value::Object(members)) => Ok(members.entry(name.as_str()).or_insert_with(fresh)),
        (Segment::Index(index), Value::Array(items)) => {
            let index = *index as usize;
            if items.len() <= index {
                items.resize(index + 1, Value::Null);
            }
            if items[index].is_null() {
                items[index] = fresh();
            }
            Ok(&mut items[index])
        }
        (Segment::Field(_), _) => Err(PathError::NoObjectToWrite { at: text_of(&segments[..at]) }),
        (Segment::Index(_), _) => Err(PathError::NoArrayToWrite { at: text_of(&segments[..at]) }),
    }
}
