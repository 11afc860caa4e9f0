//! Parses JSON, including texts that Go accepts but `serde_json` rejects.

use std::borrow::Cow;

use serde_json::Value;

/// Nesting depth from which JSON is rejected. The limit is that of `serde_json`, which accepts 127 levels. Go accepts
/// 10 000 levels. Portcullis denies requests with objects that have this nesting depth or a larger one.
pub const MAX_DEPTH: usize = 128;

/// The error of a JSON text that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// The value has [`MAX_DEPTH`] or more nesting levels.
    #[error("it is nested {MAX_DEPTH} or more levels deep")]
    TooDeep,
    /// Any other error, with the parser's message.
    #[error("{0}")]
    Malformed(String),
}

impl From<&serde_json::Error> for JsonError {
    fn from(error: &serde_json::Error) -> Self {
        let text = error.to_string();
        if text.starts_with("recursion limit exceeded") { Self::TooDeep } else { Self::Malformed(text) }
    }
}

/// Parses a JSON text.
///
/// A surrogate escape without its pair (`\ud800`) becomes U+FFFD, as in Go's `encoding/json`. `serde_json` rejects such
/// an escape.
///
/// # Errors
/// [`JsonError::TooDeep`] for 128 or more nesting levels, [`JsonError::Malformed`] for invalid JSON.
pub fn parse(text: &str) -> Result<Value, JsonError> {
    match serde_json::from_str(text) {
        Ok(value) => Ok(value),
        Err(error) => match replace_lone_surrogates(text) {
            Cow::Owned(replaced) => serde_json::from_str(&replaced).map_err(|error| (&error).into()),
            Cow::Borrowed(_) => Err((&error).into()),
        },
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

/// Returns the UTF-16 code unit of the `\uXXXX` escape at byte `at`. `None` if there is no escape at this byte.
fn escape_at(text: &str, at: usize) -> Option<u32> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_become_the_replacement_character() {
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
