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

/// Creates the problem for a value in the field `field` that does not have the type `wanted`.
pub(super) fn problem(field: FieldPath, value: &Value, wanted: &'static str) -> Problem {
    Problem { field, is: wire::kind_of(value), found: wire::brief(value), wanted }
}

/// Returns the string in the field `key` of an object; `None` if the field is missing or is not a string. An empty
/// string counts as missing, as in Landscaper's types.
pub(super) fn text<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object.get(key)?.as_str().filter(|text| !text.is_empty())
}

/// Calls `read` for a part of an object, and adds the problems that `read` reports to `problems`. The field paths of
/// these problems get the path of the part as a prefix. `place` returns this prefix.
///
/// `place` is called only if there is a problem, because most objects have none.
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
