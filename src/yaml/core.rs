//! Resolves the type of a scalar as go-yaml v3 does for manifests. It uses the core schema of YAML 1.2, and also the
//! octal numbers of YAML 1.1.
//!
//! Source: `resolve` of go-yaml v3.

use super::number;
use super::scalar_value::Scalar;
use super::tag::Tag;
use super::time::Timestamp;

/// A scalar with its resolved type.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolved {
    /// `null`
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer that is too large for an `i64`.
    Uint(u64),
    /// A float.
    Float(f64),
    /// A timestamp in RFC 3339 format, such as `2026-12-31T00:00:00Z`.
    Time(String),
    /// A string.
    Text,
}

impl Resolved {
    /// Returns the tag of a scalar with this type.
    pub fn tag(&self) -> Tag {
        match self {
            Self::Null => Tag::Null,
            Self::Bool(_) => Tag::Bool,
            Self::Int(_) | Self::Uint(_) => Tag::Int,
            Self::Float(_) => Tag::Float,
            Self::Time(_) => Tag::Timestamp,
            Self::Text => Tag::Str,
        }
    }
}

/// Resolves the type of a plain scalar, such as `true`, `0o17` or `2026-12-31`.
pub fn resolve(text: &str) -> Resolved {
    match text.as_bytes().first() {
        None => Resolved::Null,
        Some(b'0'..=b'9') => timestamp(text).unwrap_or_else(|| number(text)),
        Some(b'+' | b'-' | b'.') => number(text),
        Some(b'~' | b'n' | b'N' | b't' | b'T' | b'f' | b'F') => word(text),
        Some(_) => Resolved::Text,
    }
}

/// Returns the tag of the type that a plain scalar resolves to, such as `!!int` for `1`.
pub fn tag_of(text: &str) -> Tag {
    if text == super::scalar::MERGE { Tag::Merge } else { resolve(text).tag() }
}

fn word(text: &str) -> Resolved {
    match text {
        "~" | "null" | "Null" | "NULL" => Resolved::Null,
        "true" | "True" | "TRUE" => Resolved::Bool(true),
        "false" | "False" | "FALSE" => Resolved::Bool(false),
        _ => Resolved::Text,
    }
}

fn number(text: &str) -> Resolved {
    match number::read(text) {
        Some(Scalar::Int(int)) => Resolved::Int(int),
        Some(Scalar::Uint(int)) => Resolved::Uint(int),
        Some(Scalar::Float(float)) => Resolved::Float(float),
        _ => Resolved::Text,
    }
}

/// Parses a text as a timestamp; `None` if it is not one.
pub(super) fn timestamp(text: &str) -> Option<Resolved> {
    Timestamp::read(text).map(|time| Resolved::Time(time.to_string()))
}
