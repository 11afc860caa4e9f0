//! Computes the results of `convert` transforms.

use serde_json::Value;

use super::super::{ConvertTransform, Profile};
use super::TransformError;
use super::arithmetic::truncated;
use crate::go::{Any, Target, fmt, format_float, parse_bool, parse_float, parse_int, parse_quantity, unmarshal};

impl ConvertTransform {
    pub(super) fn resolve(&self, input: &Any, profile: Profile) -> Result<Any, TransformError> {
        if let Some(invalid) = self.invalid() {
            return Err(TransformError::new(invalid.to_string()));
        }
        let from = input.type_name();
        let to = if self.to_type == "int" { "int64" } else { &self.to_type };
        if !["string", "bool", "int64", "float64"].contains(&from) {
            return Err(TransformError::new(format!("invalid input type {from}")));
        }
        if from == to {
            return Ok(input.clone());
        }
        let format = self.format();
        let unsupported = || {
            let pair = format!("conversion from {from} to {to} is not supported with format {format}");
            TransformError::new(pair)
        };
        let converted = converted(input, to, format).ok_or_else(unsupported)?;
        converted.map_err(|error| match profile {
            Profile::Function => TransformError::new(error),
            Profile::Native117 => {
                let value = fmt::plain(input).unwrap_or_default();
                TransformError::new(format!("cannot convert value {value}: {error}"))
            }
        })
    }

    /// Returns the format of the input; `none` if the field `format` is not set.
    pub(in super::super) fn format(&self) -> &str {
        self.format.as_deref().unwrap_or("none")
    }
}

/// Converts `input` to the type `to`. `format` is the format in the `convert` transform. Returns `None` if `format`
/// does not support the conversion from the type of `input` to the type `to`. The inner result is an error if the types
/// are supported, but the value of `input` cannot be converted. The error is Go's message.
fn converted(input: &Any, to: &str, format: &str) -> Option<Result<Any, String>> {
    let nil_or = |target, nil: Any| move |text: &str| Ok(unmarshal(text, target)?.map_or(nil, Any::Json));
    Some(match (input, to, format) {
        (Any::Json(Value::String(text)), _, _) => match (to, format) {
            ("int64", "none") => parse_int(text).map(json),
            ("bool", "none") => parse_bool(text).map(json),
            ("float64", "none") => parse_float(text).map(Any::float),
            ("float64", "quantity") => parse_quantity(text).map(Any::float),
            ("object", "json") => nil_or(Target::Object, Any::NilMap)(text),
            ("array", "json") => nil_or(Target::Array, Any::NilSlice)(text),
            _ => return None,
        },
        (Any::Json(Value::Bool(is)), to, "none") => Ok(match to {
            "string" => Any::text(is.to_string()),
            "int64" => json(i64::from(*is)),
            "float64" => Any::float(f64::from(u8::from(*is))),
            _ => return None,
        }),
        (Any::Json(Value::Number(number)), to, "none") => Ok(match (number.as_i64(), number.as_f64()) {
            (Some(integer), float) => match to {
                "string" => Any::text(integer.to_string()),
                "bool" => json(integer == 1),
                "float64" => Any::float(float.unwrap_or_default()),
                _ => return None,
            },
            (None, float) => from_float(float.unwrap_or_default(), to)?,
        }),
        (Any::NonFinite(value), to, "none") => Ok(from_float(*value, to)?),
        _ => return None,
    })
}

fn from_float(value: f64, to: &str) -> Option<Any> {
    Some(match to {
        "string" => Any::text(format_float(value, 'f', None)),
        "int64" => json(truncated(value)),
        #[expect(clippy::float_cmp, reason = "Go compares so")]
        "bool" => json(value == 1.0),
        _ => return None,
    })
}

fn json(value: impl Into<Value>) -> Any {
    Any::Json(value.into())
}
