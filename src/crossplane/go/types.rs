//! The types that Go gives to what it reads from JSON.

use serde_json::Value;

/// The name of a value's type: numbers that are written as integers are `int64`, as `k8s.io/apimachinery` reads them.
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
