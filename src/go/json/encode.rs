//! Encodes values as JSON, as `encoding/json` does.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};
use serde_json::{Serializer, Value};

use crate::go::float::format_float;

/// Go formats a float with an exponent if its absolute value is at least this number.
const LARGE: f64 = 1e21;
/// Go formats a float with an exponent if its absolute value is less than this number. The float 0 is an exception.
const SMALL: f64 = 1e-6;

/// Encodes a value as JSON, with the same output as Go's `json.Marshal`. Keys are sorted. `<`, `>`, `&`, U+2028 and
/// U+2029 are escaped. `1.0` becomes `1`.
pub fn marshal(value: &Value) -> String {
    escape(encode(value, GoNumbers(CompactFormatter)))
}

/// Encodes a value in the same way as Go's `json.MarshalIndent` with an indentation of two spaces.
pub fn marshal_indent(value: &Value) -> String {
    escape(encode(value, GoNumbers(PrettyFormatter::new())))
}

fn encode(value: &Value, formatter: impl Formatter) -> String {
    let mut out = Vec::new();
    // Writing JSON to memory does not fail.
    let _ = value.serialize(&mut Serializer::with_formatter(&mut out, formatter));
    String::from_utf8(out).unwrap_or_default()
}

/// Replaces `<`, `>`, `&`, U+2028 and U+2029 in a JSON text with escapes such as `\u003c`. Go does this because HTML or
/// JavaScript could interpret these characters. In JSON, they occur only inside strings, where escapes are allowed.
fn escape(text: String) -> String {
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    text.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// Formats a float as `encoding/json` does: with an exponent if the float is very small or large.
fn number(value: f64) -> String {
    if value == 0.0 || (SMALL..LARGE).contains(&value.abs()) {
        return format_float(value, 'f', None);
    }
    let text = format_float(value, 'e', None);
    match text.split_once("e-0") {
        Some((mantissa, exponent)) => format!("{mantissa}e-{exponent}"),
        None => text,
    }
}

/// A JSON formatter that formats floats as Go does. It passes all other values to the wrapped formatter.
struct GoNumbers<F>(F);

impl<F: Formatter> Formatter for GoNumbers<F> {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(number(value).as_bytes())
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_floats_like_go() {
        let value = serde_json::json!({"b": 1.8446744073709552e19, "a": [1.0, 1e21, 1e-7, 0.000001, "<"]});
        assert_eq!(marshal(&value), r#"{"a":[1,1e+21,1e-7,0.000001,"\u003c"],"b":18446744073709552000}"#);
        assert_eq!(
            marshal_indent(&serde_json::json!({"a": {}, "b": [1]})),
            "{\n  \"a\": {},\n  \"b\": [\n    1\n  ]\n}"
        );
    }
}
