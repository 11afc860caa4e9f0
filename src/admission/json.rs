//! JSON as the API server's Go code reads and writes it, where `serde_json` differs.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::scan;

/// Maximum nesting that `serde_json` reads. Go reads 10 000 levels; a review with an object in between is denied with
/// its uid.
pub const MAX_DEPTH: usize = 128;

/// Why a JSON text could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("it is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// Anything else, in the parser's words.
    #[error("{0}")]
    Malformed(String),
}

/// Parses a JSON text.
///
/// A lone surrogate escape (`\ud800`) becomes U+FFFD, as in Go's `encoding/json`; `serde_json` alone would reject it.
///
/// # Errors
/// [`JsonError::TooDeep`] beyond 128 levels, [`JsonError::Malformed`] for invalid JSON.
pub fn parse(text: &str) -> Result<Value, JsonError> {
    match serde_json::from_str(text) {
        Ok(value) => Ok(value),
        Err(error) => match replace_lone_surrogates(text) {
            Cow::Owned(mended) => serde_json::from_str(&mended).map_err(|error| classify(&error)),
            Cow::Borrowed(_) => Err(classify(&error)),
        },
    }
}

/// Returns whether a JSON text is nested too deep for [`parse`], without parsing it.
pub(crate) fn is_too_deep(text: &str) -> bool {
    // Most objects have fewer brackets than the limit, so that their nesting need not be computed.
    count_opening(text) >= MAX_DEPTH && scan::depth(text) >= MAX_DEPTH
}

/// Counts count_opening braces and brackets in a text, including those in strings.
fn count_opening(text: &str) -> usize {
    let of = |chunk: &[u8]| chunk.iter().map(|byte| u8::from(matches!(byte, b'{' | b'['))).sum::<u8>();
    // Sums that fit into a byte are vectorized.
    text.as_bytes().chunks(usize::from(u8::MAX)).map(|chunk| usize::from(of(chunk))).sum()
}

fn classify(error: &serde_json::Error) -> JsonError {
    let text = error.to_string();
    if text.starts_with("recursion limit exceeded") { JsonError::TooDeep } else { JsonError::Malformed(text) }
}

/// Returns the members of a JSON object in the order of the text, each value as raw text; includes duplicate keys.
///
/// # Errors
/// If the text is not a JSON object.
pub fn members(text: &str) -> Result<Vec<(String, &RawValue)>, JsonError> {
    let members: Members<'_> = serde_json::from_str(text).map_err(|error| classify(&error))?;
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

/// Replaces every `\uXXXX` escape of a lone surrogate with `\ufffd`.
fn replace_lone_surrogates(text: &str) -> Cow<'_, str> {
    if !text.contains("\\u") {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(&byte) = bytes.get(at) {
        if byte != b'\\' {
            at += 1;
            continue;
        }
        match escape_at(text, at) {
            Some(high @ 0xD800..=0xDBFF) if matches!(escape_at(text, at + 6), Some(0xDC00..=0xDFFF)) => {
                debug_assert!(high < 0xDC00);
                at += 12;
            }
            Some(0xD800..=0xDFFF) => {
                out.push_str(&text[copied..at]);
                out.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            Some(_) => at += 6,
            None => at += 2,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Returns the code unit of the `\uXXXX` escape at `at`.
fn escape_at(text: &str, at: usize) -> Option<u32> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    u32::from_str_radix(digits, 16).ok()
}

/// Writes a value as the API server does: compact, with sorted keys, and with `<`, `>`, `&`, U+2028 and U+2029 escaped.
///
/// Landscaper prints repository contexts as the bytes that it received, so its messages contain these escapes.
pub fn to_go_string(value: &Value) -> String {
    let plain = value.to_string();
    if !plain.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return plain;
    }
    plain
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// Returns the JSON of a value for a message, cut after 60 characters.
pub fn brief(value: &Value) -> String {
    const LONGEST: usize = 60;
    let text = value.to_string();
    if text.chars().count() <= LONGEST {
        return text;
    }
    let mut cut: String = text.chars().take(LONGEST - 1).collect();
    cut.push('…');
    cut
}

/// Returns the name of a value's JSON type with its article, for messages.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_lone_surrogates() {
        assert_eq!(parse(r#"{"a":"x\ud800y"}"#), Ok(serde_json::json!({"a": "x\u{fffd}y"})));
        assert_eq!(parse(r#"{"a":"\udfff\ud83d\ude00"}"#), Ok(serde_json::json!({"a": "\u{fffd}\u{1f600}"})));
        assert_eq!(parse(r#"{"a":"\\ud800"}"#), Ok(serde_json::json!({"a": "\\ud800"})));
    }

    #[test]
    fn distinguishes_too_deep_from_malformed() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert_eq!(parse(&deep), Err(JsonError::TooDeep));
        assert!(matches!(parse("{"), Err(JsonError::Malformed(_))));
    }
}
