//! Between nodes and JSON: some steps of kustomize turn an object into JSON and back.

use serde_json::{Map, Number, Value as Json};

use crate::kustomize::emit::Value;
use crate::kustomize::node::{Entry, Kind, Node, Origin, Style, Tag, Unprintable, printed};
use crate::yaml::float::Shortest;

/// The JSON of a node.
///
/// # Errors
///
/// When the node cannot be printed.
pub(super) fn of_node(node: &Node) -> Result<Json, Unprintable> {
    Ok(of_value(&printed(node)?))
}

/// The JSON of a value.
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

/// A float without a fraction is an integer in Go's JSON.
fn float_number(float: f64) -> Option<Number> {
    let digits = Shortest::of(float)?.positional();
    match digits.parse::<i64>() {
        Ok(int) if float.abs() < 1e21 => Some(int.into()),
        _ => Number::from_f64(float),
    }
}

/// The same JSON with all numbers as Go reads them without knowing a type: floats of 64 bits.
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

/// The node that JSON text is read into: strings are in double quotes.
pub(super) fn to_node(value: &Json, origin: Origin) -> Node {
    let scalar = |text: String, tag| Node::new(Kind::Scalar(text.into()), tag);
    let node = match value {
        Json::Null => Node::null(),
        Json::Bool(flag) => scalar(flag.to_string(), Tag::Bool),
        Json::Number(number) => Node::resolved(number.to_string()),
        Json::String(text) => Node { style: Style::DoubleQuoted, ..scalar(text.clone(), Tag::Str) },
        Json::Array(items) => Node::seq(items.iter().map(|item| to_node(item, origin)).collect()),
        Json::Object(members) => Node::map(entries(members, origin)),
    };
    node.at(origin)
}

fn entries(members: &Map<String, Json>, origin: Origin) -> Vec<Entry> {
    members.iter().map(|(key, value)| Entry::quoted(key.as_str(), to_node(value, origin))).collect()
}

/// Gives the nodes of an object that was JSON in between the places of those that were at the same paths before.
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
