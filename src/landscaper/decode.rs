//! Reports values that Landscaper's Go types cannot decode.

use serde_json::Value;

use crate::admission::{FieldPath, json as wire};

/// A value that Landscaper cannot decode. Because of this value, Landscaper cannot read the object at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The field path of the value that cannot be decoded.
    pub field: FieldPath,
    /// The type of the value that cannot be decoded, such as `a string`.
    pub is: &'static str,
    /// The value that cannot be decoded, as a shortened text.
    pub found: String,
    /// The expected type, such as `an object`.
    pub wanted: &'static str,
}

/// Creates a [`Problem`] for a field whose value has the wrong type. `field` is the path of the field, `value` is its
/// value, and `wanted` is the expected type.
pub(super) fn problem(field: FieldPath, value: &Value, wanted: &'static str) -> Problem {
    Problem { field, is: wire::kind_of(value), found: wire::brief(value), wanted }
}

/// Returns the string in the field `key` of an object; `None` if the field is missing or is not a string. An empty
/// string counts as missing, as in Landscaper's types.
pub(super) fn text<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object.get(key)?.as_str().filter(|text| !text.is_empty())
}

/// Reads a part of an object with `read`, and appends the problems that `read` finds to `problems`. `read` uses field
/// paths relative to the part. `place` returns the field path of the part, which is prepended to these relative paths.
///
/// `place` is called only if there is a problem, because most objects have no problems.
pub(super) fn within(
    problems: &mut Vec<Problem>,
    place: impl FnOnce() -> FieldPath,
    read: impl FnOnce(&mut Vec<Problem>),
) {
    let mut inner = Vec::new();
    read(&mut inner);
    if inner.is_empty() {
        return;
    }
    let place = place();
    problems.extend(inner.into_iter().map(|problem| Problem { field: place.join(&problem.field), ..problem }));
}
