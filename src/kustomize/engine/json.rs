//! Converts YAML nodes to JSON and back, as some steps of kustomize do.

use std::sync::Arc;

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

/// Converts a node that is nested in an object to JSON, such as an item of a List. All keys of the node must be
/// strings. kustomize accepts other keys only at the top level of an object; see [`of_node`].
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

/// Rounds all numbers to `float64`, as Go does when it decodes JSON into a value of the type `any`.
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

/// Converts the JSON of a changed object back to a node. `before` is the object before the change. Strings get the
/// style in which go-yaml writes them, because kustomize writes the values as YAML and parses this YAML.
///
/// A scalar whose value has not changed keeps the origin (file and line) that it has at the same path in `before`. A
/// mapping or list keeps its origin even if its content has changed. All other nodes get the origin `origin`.
pub(super) fn to_node(value: &Json, origin: Origin, before: &Node) -> Node {
    with_style(value, origin, style_of, Some(before))
}

/// Converts JSON to a node in which all strings are in double quotes. kustomize gets such a node when it parses a JSON
/// text as YAML. `before` is the node that was converted to the JSON.
///
/// Each node gets the origin (file and line) of the node at the same path in `before`. If that node does not exist, or
/// has another type or scalar value, the new node gets the origin of `before` itself.
pub(super) fn parsed(value: &Json, before: &Node) -> Node {
    with_style(value, before.origin, |_| Style::DoubleQuoted, Some(before))
}

/// Converts JSON to a node.
///
/// - `style` returns the YAML style of a string.
/// - `before` is the old version of the node, if any. A scalar whose value has not changed keeps the origin (file and
///   line) that it has at the same path in `before`. A mapping or list keeps its origin even if its content has
///   changed. Unchanged keys and strings share their memory with `before`.
/// - `origin` is the origin of all other nodes.
fn with_style(value: &Json, origin: Origin, style: fn(&str) -> Style, before: Option<&Node>) -> Node {
    let scalar = |text: &str, tag| Node::new(Kind::Scalar(text.into()), tag);
    let member = |(key, value): (&String, &Json)| {
        let old = before.and_then(|before| before.entries().iter().find(|entry| *entry.key == **key));
        let name = old.map_or_else(|| key.as_str().into(), |old| Arc::clone(&old.key));
        Entry::quoted(name, with_style(value, origin, style, old.map(|old| &old.value)))
    };
    let item =
        |(at, item): (usize, &Json)| with_style(item, origin, style, before.and_then(|before| before.items().get(at)));
    let node = match value {
        Json::Null => Node::null(),
        Json::Bool(flag) => scalar(if *flag { "true" } else { "false" }, Tag::Bool),
        Json::Number(number) => Node::resolved(text_of(number)),
        Json::String(text) => {
            let old = before.and_then(Node::shared_text).filter(|old| **old == **text);
            let text = old.unwrap_or_else(|| text.as_str().into());
            Node { style: style(&text), ..Node::new(Kind::Scalar(text), Tag::Str) }
        }
        Json::Array(items) => Node::seq(items.iter().enumerate().map(item).collect()),
        Json::Object(members) => Node::map(members.iter().map(member).collect()),
    };
    let old = before.filter(|before| match (&node.kind, &before.kind) {
        (Kind::Scalar(new), Kind::Scalar(old)) => new == old,
        (Kind::Map(_), Kind::Map(_)) | (Kind::Seq(_), Kind::Seq(_)) => true,
        _ => false,
    });
    node.at(old.map_or(origin, |old| old.origin))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::yaml::{self, Limits};

    #[test]
    fn unchanged_values_keep_their_origins() {
        let before = yaml::node("a: {b: 1}\nc:\n- d\n- e\nf: g\n", 7, &Limits::default()).unwrap().unwrap();
        let patch = Origin { source: 9, line: 20 };
        let node = to_node(&json!({"a": {"b": 2}, "c": ["d", "x", "y"], "f": {"g": "h"}}), patch, &before);
        let line = |path: &[&str]| node.at_path(path).map(|node| node.origin.line);
        assert_eq!((node.origin.line, line(&["a"]), line(&["a", "b"])), (1, Some(1), Some(20)));
        let items = node.get("c").map(Node::items).unwrap_or_default();
        assert_eq!(items.iter().map(|item| item.origin.line).collect::<Vec<_>>(), [3, 20, 20]);
        assert_eq!((line(&["c"]), line(&["f"]), line(&["f", "g"])), (Some(3), Some(20), Some(20)));
    }
}
