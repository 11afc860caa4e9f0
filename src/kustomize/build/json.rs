//! Converts YAML nodes to JSON and back, as some steps of kustomize do.

use serde_json::{Number, Value as Json};

use crate::go::{floats, format_float, integers};
use crate::kustomize::emit::{TextStyle, Value};
use crate::kustomize::node::{Entry, Kind, Node, Origin, Style, Tag, Unprintable, printed, printed_inner};

/// Converts a node to JSON.
///
/// # Errors
///
/// If the node cannot be converted, for example because of a duplicate key.
pub(super) fn of_node(node: &Node) -> Result<Json, Unprintable> {
    Ok(of_value(&printed(node)?))
}

/// Converts a node inside an object to JSON, such as an item of a List.
///
/// # Errors
///
/// If the node cannot be converted, for example because of a duplicate key.
pub(super) fn of_inner(node: &Node) -> Result<Json, Unprintable> {
    Ok(of_value(&printed_inner(node)?))
}

/// Converts a value to JSON. As in Go, a float without a fraction becomes an integer if it fits in 64 bits. Both `0.0`
/// and `-0.0` stay floats, because an integer could not represent the sign.
pub(super) fn of_value(value: &Value<'_>) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(flag) => Json::Bool(*flag),
        Value::Int(int) => Json::Number((*int).into()),
        Value::Uint(int) => Json::Number((*int).into()),
        Value::Float(float) if *float == 0.0 => (*float).into(),
        Value::Float(float) => integers((*float).into()),
        Value::Text(text) => Json::String(text.clone().into_owned()),
        Value::List(items) => Json::Array(items.iter().map(of_value).collect()),
        Value::Map(members) => {
            Json::Object(members.iter().map(|(key, value)| (key.clone().into_owned(), of_value(value))).collect())
        }
    }
}

/// Rounds all numbers to `float64`, as Go does when it decodes JSON without a type.
pub(super) fn with_floats(mut value: Json) -> Json {
    round(&mut value);
    value
}

fn round(value: &mut Json) {
    match value {
        Json::Number(number) if is_negative_zero(number) => *value = (-0.0).into(),
        Json::Number(_) => *value = integers(floats(value.take())),
        Json::Array(items) => items.iter_mut().for_each(round),
        Json::Object(members) => members.values_mut().for_each(round),
        Json::Null | Json::Bool(_) | Json::String(_) => {}
    }
}

fn is_negative_zero(number: &Number) -> bool {
    number.as_f64().is_some_and(|float| float == 0.0 && float.is_sign_negative())
}

/// Converts JSON to a node. Strings get the style in which go-yaml writes them, because kustomize writes the values as
/// YAML and parses this text.
pub(super) fn to_node(value: &Json, origin: Origin) -> Node {
    with_style(value, origin, style_of)
}

/// Converts JSON to a node as if the JSON text had been parsed as YAML. All strings of this node are in double quotes.
pub(super) fn parsed(value: &Json, origin: Origin) -> Node {
    with_style(value, origin, |_| Style::DoubleQuoted)
}

fn with_style(value: &Json, origin: Origin, style: fn(&str) -> Style) -> Node {
    let scalar = |text: &str, tag| Node::new(Kind::Scalar(text.into()), tag);
    let entry = |(key, value): (&String, &Json)| Entry::quoted(key.as_str(), with_style(value, origin, style));
    let node = match value {
        Json::Null => Node::null(),
        Json::Bool(flag) => scalar(if *flag { "true" } else { "false" }, Tag::Bool),
        Json::Number(number) => Node::resolved(text_of(number)),
        Json::String(text) => Node { style: style(text), ..scalar(text, Tag::Str) },
        Json::Array(items) => Node::seq(items.iter().map(|item| with_style(item, origin, style)).collect()),
        Json::Object(members) => Node::map(members.iter().map(entry).collect()),
    };
    node.at(origin)
}

/// Returns the text of a number as go-yaml writes it.
fn text_of(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => format_float(float, 'g', None),
        _ => number.to_string(),
    }
}

fn style_of(text: &str) -> Style {
    match TextStyle::of(text) {
        TextStyle::Plain => Style::Plain,
        TextStyle::Single => Style::SingleQuoted,
        TextStyle::Double => Style::DoubleQuoted,
        TextStyle::Literal => Style::Literal,
    }
}

/// Restores the origins of nodes after a conversion to JSON and back. Each node gets the origin of the node at the same
/// path in `before`, unless its value has changed.
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
