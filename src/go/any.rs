//! Go values that one transform of a Crossplane Composition returns and the next transform receives. They have the Go
//! type `any`, so some of them, such as NaN, cannot be represented in JSON.

use serde_json::Value;

use super::json;

/// A value with its Go type: a JSON value, or one of the Go values that JSON lacks.
#[derive(Debug, Clone, PartialEq)]
pub enum Any {
    /// A JSON value. Integers are `int64`, all other numbers `float64`.
    Json(Value),
    /// A `float64` that is not finite.
    NonFinite(f64),
    /// A Go `string` whose bytes are not valid UTF-8.
    Bytes(Vec<u8>),
    /// A nil `map[string]any`. Go prints it as an empty map, and encodes it as `null`.
    NilMap,
    /// A nil `[]any`. Go prints it as an empty list, and encodes it as `null`.
    NilSlice,
}

impl Any {
    /// Creates a Go `float64`.
    pub fn float(value: f64) -> Self {
        match serde_json::Number::from_f64(value) {
            Some(number) => Self::Json(Value::Number(number)),
            None => Self::NonFinite(value),
        }
    }

    /// Creates a Go `string`.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Json(Value::String(text.into()))
    }

    /// Creates a Go `string` from bytes, which may be invalid UTF-8.
    pub fn bytes(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::text(text),
            Err(error) => Self::Bytes(error.into_bytes()),
        }
    }

    /// Returns the name of the value's Go type, as `%T` prints it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Json(value) => type_of(value),
            Self::NonFinite(_) => "float64",
            Self::Bytes(_) => "string",
            Self::NilMap => "map[string]interface {}",
            Self::NilSlice => "[]interface {}",
        }
    }

    /// Converts the value to JSON, as `encoding/json` would encode it.
    ///
    /// # Errors
    /// The message of `encoding/json`, if the value is infinity or NaN.
    pub fn into_value(self) -> Result<Value, String> {
        match self {
            Self::Json(value) => Ok(value),
            Self::NonFinite(value) => {
                Err(format!("json: unsupported value: {}", super::format_float(value, 'g', None)))
            }
            Self::Bytes(bytes) => Ok(Value::String(lossy(&bytes))),
            Self::NilMap | Self::NilSlice => Ok(Value::Null),
        }
    }

    /// Returns the value as JSON for messages. Infinity and NaN become strings.
    pub fn shown(&self) -> Value {
        match self {
            Self::NonFinite(value) => Value::String(super::format_float(*value, 'g', None)),
            other => other.clone().into_value().unwrap_or(Value::Null),
        }
    }

    /// Encodes the value as a JSON text, in the same way as `encoding/json`.
    ///
    /// # Errors
    /// The message of `encoding/json`, if the value is infinity or NaN.
    pub fn to_json(&self) -> Result<String, String> {
        Ok(json::marshal(&self.clone().into_value()?))
    }
}

impl From<Value> for Any {
    fn from(value: Value) -> Self {
        Self::Json(value)
    }
}

/// Returns the Go type of a JSON value, such as `string`. A number without a fraction or exponent has the type `int64`
/// if it fits, as in `k8s.io/apimachinery`.
pub fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Converts bytes to a text. Replaces each invalid byte sequence with U+FFFD, as `encoding/json` does.
fn lossy(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '\u{fffd}'));
    }
    text
}
