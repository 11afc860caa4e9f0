//! Defines the YAML values that are printed: scalars, sequences and mappings.

use std::borrow::Cow;

/// A YAML value to write. It has no tags, styles or comments, because kustomize drops them before it writes a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer that does not fit into `Int`.
    Uint(u64),
    /// A number with a fraction or an exponent, or an integer that does not fit into 64 bits.
    Float(f64),
    /// A string.
    Text(Cow<'a, str>),
    /// A sequence.
    List(Vec<Value<'a>>),
    /// A mapping with unique keys, in any order.
    Map(Vec<(Cow<'a, str>, Value<'a>)>),
}

impl<'a> From<&'a serde_json::Value> for Value<'a> {
    fn from(value: &'a serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(value) => Self::Bool(*value),
            serde_json::Value::Number(number) => Self::from(number),
            serde_json::Value::String(text) => Self::Text(text.as_str().into()),
            serde_json::Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            serde_json::Value::Object(entries) => {
                Self::Map(entries.iter().map(|(key, value)| (key.as_str().into(), Self::from(value))).collect())
            }
        }
    }
}

impl From<&serde_json::Number> for Value<'_> {
    fn from(number: &serde_json::Number) -> Self {
        match (number.as_i64(), number.as_u64()) {
            (Some(int), _) => Self::Int(int),
            (None, Some(int)) => Self::Uint(int),
            // without the feature `arbitrary_precision`, every other number of serde_json is a float
            (None, None) => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
        }
    }
}
