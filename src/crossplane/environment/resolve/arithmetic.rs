//! Computes the results of `math` transforms.

use serde_json::Value;

use super::super::{MathTransform, MathType, Profile};
use super::TransformError;
use crate::go::Any;

/// A number with its Go type.
enum Number {
    Integer(i64),
    Float(f64),
}

impl MathTransform {
    pub(super) fn resolve(&self, input: &Any, profile: Profile) -> Result<Any, TransformError> {
        if let Some(invalid) = self.invalid(profile) {
            return Err(TransformError::new(invalid.to_string()));
        }
        let number = number(input).ok_or_else(|| {
            let found = input.type_name();
            TransformError::new(format!("input is required to be a number for math transformer, got {found}"))
        })?;
        let bound = |bound: Option<i64>, is_beyond: fn(i64, i64) -> bool| match bound {
            Some(bound) if is_beyond(number.truncated(), bound) => Any::Json(Value::from(bound)),
            _ => input.clone(),
        };
        Ok(match self.kind() {
            MathType::ClampMin => bound(self.clamp_min, |number, bound| number < bound),
            MathType::ClampMax => bound(self.clamp_max, |number, bound| number > bound),
            _ => number.times(self.multiply.unwrap_or(1)),
        })
    }

    /// Returns the type of the `math` transform. The default is `Multiply`, as in Crossplane up to 1.17.
    pub(in super::super) fn kind(&self) -> MathType {
        if self.math_type.is_unset() { MathType::Multiply } else { self.math_type.clone() }
    }
}

fn number(input: &Any) -> Option<Number> {
    match input {
        Any::NonFinite(value) => Some(Number::Float(*value)),
        Any::Json(Value::Number(number)) => match number.as_i64() {
            Some(integer) => Some(Number::Integer(integer)),
            None => number.as_f64().map(Number::Float),
        },
        _ => None,
    }
}

impl Number {
    /// Multiplies the number by a factor. Integers wrap around on overflow, as in Go.
    fn times(&self, factor: i64) -> Any {
        match self {
            Self::Integer(value) => Any::Json(Value::from(value.wrapping_mul(factor))),
            #[expect(clippy::cast_precision_loss, reason = "Go converts the factor in the same way")]
            Self::Float(value) => Any::float(value * factor as f64),
        }
    }

    fn truncated(&self) -> i64 {
        match self {
            Self::Integer(value) => *value,
            Self::Float(value) => truncated(*value),
        }
    }
}

/// Converts a `float64` to `int64`, as Go does on amd64. The fraction is dropped. A value that does not fit becomes the
/// smallest integer.
pub(super) fn truncated(value: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    #[expect(clippy::cast_possible_truncation, reason = "it fits")]
    if (-LIMIT..LIMIT).contains(&value) { value as i64 } else { i64::MIN }
}
