//! Between nodes and JSON: some steps of kustomize turn an object into JSON and back.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};
use serde_json::{Map, Number, Serializer, Value as Json};

use crate::kustomize::emit::{TextStyle, Value};
use crate::kustomize::node::{Entry, Kind, Node, Origin, Style, Tag, Unprintable, printed};
use crate::yaml::float::Shortest;

/// Returns the JSON of a node.
///
/// # Errors
///
/// If the node cannot be printed.
pub(super) fn of_node(node: &Node) -> Result<Json, Unprintable> {
    Ok(of_value(&printed(node)?))
}

/// Returns the JSON of a value.
pub(super) fn of_value(value: &Value<'_>) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(flag) => Json::Bool(*flag),
        Value::Int(int) => Json::Number((*int).into()),
        Value::Uint(int) => Json::Number((*int).into()),
        Value::Float(float) => float_number(*float).map_or(Json::Null, Json::Number),
        Value::Text(text) => Json::String(text.clone().into_owned()),
        Value::List(items) => Json::Array(items.iter().map(of_value).collect()),
        Value::Map(members) => {
            Json::Object(members.iter().map(|(key, value)| (key.clone().into_owned(), of_value(value))).collect())
        }
    }
}

/// Converts a float without a fraction to an integer, as in Go's JSON.
fn float_number(float: f64) -> Option<Number> {
    let digits = Shortest::of(float)?.positional();
    match digits.parse::<i64>() {
        Ok(int) if float.abs() < 1e21 => Some(int.into()),
        _ => Number::from_f64(float),
    }
}

/// Converts all numbers to 64-bit floats, as Go does without a target type.
pub(super) fn with_floats(value: &mut Json) {
    match value {
        Json::Number(number) => {
            if let Some(float) = number.as_f64().and_then(float_number) {
                *number = float;
            }
        }
        Json::Array(items) => items.iter_mut().for_each(with_floats),
        Json::Object(members) => members.values_mut().for_each(with_floats),
        Json::Null | Json::Bool(_) | Json::String(_) => {}
    }
}

/// From this magnitude on Go writes floats with an exponent,
const LARGE: f64 = 1e21;
/// and below this one.
const SMALL: f64 = 1e-6;

/// Writes JSON as Go does: compact, keys sorted, what could end a script in HTML escaped.
pub(super) fn to_go_string(value: &Json) -> String {
    escaped(written(value, GoNumbers(CompactFormatter)))
}

/// Writes JSON as Go does, with an indentation of two.
pub(super) fn to_go_lines(value: &Json) -> String {
    escaped(written(value, GoNumbers(PrettyFormatter::new())))
}

fn written(value: &Json, formatter: impl Formatter) -> String {
    let mut out = Vec::new();
    // writing JSON into memory does not fail
    let _ = value.serialize(&mut Serializer::with_formatter(&mut out, formatter));
    String::from_utf8(out).unwrap_or_default()
}

fn escaped(text: String) -> String {
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    text.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// Another format, with Go's floats.
struct GoNumbers<F>(F);

impl<F: Formatter> Formatter for GoNumbers<F> {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let is_positional = value == 0.0 || (SMALL..LARGE).contains(&value.abs());
        match Shortest::of(value).filter(|_| is_positional) {
            Some(digits) => writer.write_all(digits.positional().as_bytes()),
            None => self.0.write_f64(writer, value),
        }
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

/// Returns the node that JSON text is read into: go-yaml writes the values and reads them again, so that strings have
/// the style in which it writes them.
pub(super) fn to_node(value: &Json, origin: Origin) -> Node {
    let scalar = |text: String, tag| Node::new(Kind::Scalar(text.into()), tag);
    let node = match value {
        Json::Null => Node::null(),
        Json::Bool(flag) => scalar(flag.to_string(), Tag::Bool),
        Json::Number(number) => Node::resolved(number.to_string()),
        Json::String(text) => Node { style: style_of(text), ..scalar(text.clone(), Tag::Str) },
        Json::Array(items) => Node::seq(items.iter().map(|item| to_node(item, origin)).collect()),
        Json::Object(members) => Node::map(entries(members, origin)),
    };
    node.at(origin)
}

fn style_of(text: &str) -> Style {
    match TextStyle::of(text) {
        TextStyle::Plain => Style::Plain,
        TextStyle::Single => Style::SingleQuoted,
        TextStyle::Double => Style::DoubleQuoted,
        TextStyle::Literal => Style::Literal,
    }
}

fn entries(members: &Map<String, Json>, origin: Origin) -> Vec<Entry> {
    members.iter().map(|(key, value)| Entry::quoted(key.as_str(), to_node(value, origin))).collect()
}

/// Restores the positions of nodes after a conversion through JSON, by their paths.
pub(super) fn restore_origins(node: &mut Node, before: &Node) {
    let is_same = match (&node.kind, &before.kind) {
        (Kind::Scalar(new), Kind::Scalar(old)) => new == old,
        (Kind::Map(_), Kind::Map(_)) | (Kind::Seq(_), Kind::Seq(_)) => true,
        _ => false,
    };
    if !is_same {
        return;
    }
    node.origin = before.origin;
    if let Some(entries) = node.entries_mut() {
        for entry in entries {
            if let Some(old) = before.get(&entry.key) {
                restore_origins(&mut entry.value, old);
            }
        }
    } else if let Some(items) = node.items_mut() {
        items.iter_mut().zip(before.items()).for_each(|(new, old)| restore_origins(new, old));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_go_writes_them() {
        let value = serde_json::json!({"b": 1.8446744073709552e19, "a": [1.0, 1e21, 1e-7, 0.000001, "<"]});
        assert_eq!(to_go_string(&value), r#"{"a":[1,1e+21,1e-7,0.000001,"\u003c"],"b":18446744073709552000}"#);
        assert_eq!(to_go_lines(&serde_json::json!({"a": {}, "b": [1]})), "{\n  \"a\": {},\n  \"b\": [\n    1\n  ]\n}");
    }
}
