//! Helpers for the JSON texts of requests: parsing, listing members in order, and printing values in messages.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::scan;
pub use crate::go::json::{JsonError, MAX_DEPTH, parse};

/// A trait for looking up a nested member of a JSON value.
pub trait Lookup {
    /// Returns the value at a path of keys; `None` if a member is missing.
    fn at(&self, keys: &[&str]) -> Option<&Value>;
}

impl Lookup for Value {
    fn at(&self, keys: &[&str]) -> Option<&Value> {
        keys.iter().try_fold(self, |value, key| value.get(key))
    }
}

/// Returns whether a JSON text is nested too deep for [`parse`]. Does not parse the text.
pub(crate) fn is_too_deep(text: &str) -> bool {
    // Most objects have fewer braces and brackets than the maximum depth.
    opening(text) >= MAX_DEPTH && scan::depth(text) >= MAX_DEPTH
}

/// Counts the opening braces and brackets in a text. Also counts braces and brackets in strings.
fn opening(text: &str) -> usize {
    let of = |chunk: &[u8]| chunk.iter().map(|byte| u8::from(matches!(byte, b'{' | b'['))).sum::<u8>();
    // The compiler vectorizes sums that fit into a byte.
    text.as_bytes().chunks(usize::from(u8::MAX)).map(|chunk| usize::from(of(chunk))).sum()
}

/// Returns the members of a JSON object in the order of the text. Does not parse their values. If a key occurs more
/// than once, returns one member for each occurrence.
///
/// # Errors
/// If the text is not a JSON object.
pub fn members(text: &str) -> Result<Vec<(String, &RawValue)>, JsonError> {
    let members: Members<'_> = serde_json::from_str(text).map_err(|error| JsonError::from(&error))?;
    Ok(members.0)
}

struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Walk;
        impl<'de> Visitor<'de> for Walk {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Walk)
    }
}

/// Returns the JSON of a value for a message, truncated to 60 characters.
pub fn brief(value: &Value) -> String {
    const MAX_LENGTH: usize = 60;
    let text = value.to_string();
    if text.chars().count() <= MAX_LENGTH {
        return text;
    }
    let mut cut: String = text.chars().take(MAX_LENGTH - 1).collect();
    cut.push('…');
    cut
}

/// Returns the JSON type of a value with its article, such as `a list`, for messages.
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
