//! Encodes JSON like `encoding/json`.

use serde_json::{Number, Value};

use super::float::format_float;

/// Encodes a value like Go: keys are sorted, `<`, `>`, `&`, U+2028 and U+2029 are escaped, and `1.0` is `1`.
pub fn marshal(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

/// Writes a value. The recursion depth is the depth of the value.
fn write(value: &Value, out: &mut String) {
    match value {
        Value::Number(number) => out.push_str(&number_text(number)),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (at, (key, member)) in members.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                out.push_str(&crate::admission::json::to_go_string(&Value::String(key.clone())));
                out.push(':');
                write(member, out);
            }
            out.push('}');
        }
        other => out.push_str(&crate::admission::json::to_go_string(other)),
    }
}

/// Encodes a number like Go.
pub(super) fn number_text(number: &Number) -> String {
    if let Some(integer) = number.as_i64() {
        return integer.to_string();
    }
    let value = number.as_f64().unwrap_or_default();
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-6..1e21).contains(&magnitude) {
        return format_float(value, 'f', None);
    }
    let text = format_float(value, 'e', None);
    match text.split_once("e-0") {
        Some((mantissa, exponent)) => format!("{mantissa}e-{exponent}"),
        None => text,
    }
}
