//! Values as Landscaper's types decode them, and what they cannot.

use serde_json::Value;

use crate::admission::{FieldPath, json as wire};

/// A value that Landscaper cannot decode, so that it cannot work with the object at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it is.
    pub field: FieldPath,
    /// What it is, such as `a string`.
    pub is: &'static str,
    /// Its text, shortened.
    pub found: String,
    /// What it must be.
    pub wanted: &'static str,
}

/// What is wrong with a value that is not `wanted`.
pub(super) fn problem(field: FieldPath, value: &Value, wanted: &'static str) -> Problem {
    Problem { field, is: wire::kind_of(value), found: wire::brief(value), wanted }
}

/// A string member of an object; an empty string counts as missing, as in Landscaper's types.
pub(super) fn text<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object.get(key)?.as_str().filter(|text| !text.is_empty())
}

/// Lets `read` tell problems with their place in a part of an object, and puts the place of that part before it.
///
/// Places are worked out only where there is a problem: mostly there is none, and many parts are read.
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
