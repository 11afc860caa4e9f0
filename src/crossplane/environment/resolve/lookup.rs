//! Computes the results of `map` and `match` transforms.

use serde_json::{Map, Value};

use super::super::{FallbackTo, MatchPattern, MatchTransform, PatternType};
use super::TransformError;
use crate::go::{Any, floats, regexp};

/// Looks up an input string in `pairs`, the pairs of a `map` transform. Fails if the input is not a string, or if its
/// value in `pairs` is missing or `null`.
pub(super) fn resolve_map(pairs: &Map<String, Value>, input: &Any) -> Result<Any, TransformError> {
    let Any::Json(Value::String(key)) = input else {
        let found = input.type_name();
        return Err(TransformError::new(format!("type {found} is not supported for map transform")));
    };
    match pairs.get(key) {
        None => Err(TransformError::new(format!("key {key} is not found in map"))),
        // Upstream's type for the pairs does not keep null.
        Some(Value::Null) => {
            Err(TransformError::new(format!("value for key {key} is not valid JSON: unexpected end of JSON input")))
        }
        Some(value) => Ok(Any::Json(floats(value.clone()))),
    }
}

impl MatchTransform {
    pub(super) fn resolve(&self, input: &Any) -> Result<Any, TransformError> {
        for (at, pattern) in self.patterns.iter().enumerate() {
            let matches = pattern.matches(input);
            if matches.map_err(|error| error.within(&format!("cannot match pattern at index {at}")))? {
                return Ok(Any::Json(floats(pattern.result.clone())));
            }
        }
        match self.fallback_to {
            FallbackTo::Input if self.fallback_value.is_null() => Ok(input.clone()),
            FallbackTo::Input => {
                Err(TransformError::new("cannot set both a fallback value and the fallback to input flag"))
            }
            _ => Ok(Any::Json(floats(self.fallback_value.clone()))),
        }
    }
}

impl MatchPattern {
    fn matches(&self, input: &Any) -> Result<bool, TransformError> {
        let required = |what: &str| TransformError::new(format!("{what} is required by type {what}"));
        match &self.pattern_type {
            PatternType::Literal => {
                let literal = self.literal.as_ref().ok_or_else(|| required("literal"))?;
                Ok(text(input, "<nil>")? == literal)
            }
            PatternType::Regexp => {
                let pattern = self.regexp.as_ref().ok_or_else(|| required("regexp"))?;
                let regexp = regexp::compile(pattern)
                    .map_err(|error| TransformError::new(format!("cannot compile regexp: {error}")))?;
                Ok(regexp.is_match(text(input, "null")?))
            }
            PatternType::Other(name) => Err(TransformError::new(format!("unsupported pattern type '{name}'"))),
        }
    }
}

/// Returns the string in `input`, which is the input of a `match` transform. The caller compares the string with a
/// pattern. Returns an error with the type of the input if it is not a string. The parameter `null` contains the name
/// of the type for a null value.
fn text<'i>(input: &'i Any, null: &str) -> Result<&'i str, TransformError> {
    match input {
        Any::Json(Value::String(text)) => Ok(text),
        // Invalid UTF-8 equals no literal, and regular expressions work on text.
        Any::Bytes(_) => Ok("\u{fffd}"),
        other => {
            let found = if *other == Any::Json(Value::Null) { null } else { other.type_name() };
            Err(TransformError::new(format!("unsupported input type '{found}'")))
        }
    }
}
