//! Evaluates comparisons in JSONPath filters, such as `@.type=="Ready"`.
//!
//! Source: `Equal`, `Less` and the other functions in `k8s.io/client-go/third_party/forked/golang/template/funcs.go`.
//! Both sides of a comparison must have the same type. Integers and floats are different types.

use std::cmp::Ordering;

use serde_json::Value;

use super::error::Problem;
use super::item::Datum;

/// A scalar value in a comparison of a JSONPath filter.
enum Basic<'a> {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'a str),
}

fn basic<'a>(datum: &Datum<'a>) -> Result<Basic<'a>, Problem> {
    Ok(match *datum {
        Datum::Value(Value::Bool(bool)) => Basic::Bool(*bool),
        Datum::Value(Value::String(text)) => Basic::Text(text),
        Datum::Value(Value::Number(number)) => match number.as_i64() {
            Some(int) => Basic::Int(int),
            None => Basic::Float(number.as_f64().unwrap_or(f64::INFINITY)),
        },
        Datum::Text(text) => Basic::Text(text),
        Datum::Bool(bool) => Basic::Bool(bool),
        Datum::Int(int) => Basic::Int(int),
        Datum::Byte(byte) => Basic::Int(byte.into()),
        Datum::Float(float) => Basic::Float(float),
        Datum::Value(_) | Datum::Nothing => return Err(invalid()),
    })
}

fn invalid() -> Problem {
    Problem::Mismatch("invalid type for comparison".to_owned())
}

/// Returns whether the comparison `left operator right` in a filter is true. Fails if the operator is unknown, or if it
/// cannot compare values of the types of `left` and `right`.
pub(super) fn holds(left: &Datum<'_>, operator: &str, right: &Datum<'_>) -> Result<bool, Problem> {
    let wanted: fn(Ordering) -> bool = match operator {
        "==" => Ordering::is_eq,
        "!=" => Ordering::is_ne,
        "<" => Ordering::is_lt,
        "<=" => Ordering::is_le,
        ">" => Ordering::is_gt,
        ">=" => Ordering::is_ge,
        other => return Err(Problem::Mismatch(format!("unrecognized filter operator {other}"))),
    };
    let is_equality = ["==", "!="].contains(&operator);
    let ordering = match (basic(left)?, basic(right)?) {
        (Basic::Bool(left), Basic::Bool(right)) if is_equality => left.cmp(&right),
        (Basic::Bool(_), Basic::Bool(_)) => return Err(invalid()),
        (Basic::Int(left), Basic::Int(right)) => left.cmp(&right),
        (Basic::Float(left), Basic::Float(right)) => left.partial_cmp(&right).unwrap_or(Ordering::Less),
        (Basic::Text(left), Basic::Text(right)) => left.cmp(right),
        _ => return Err(Problem::Mismatch("incompatible types for comparison".to_owned())),
    };
    Ok(wanted(ordering))
}
