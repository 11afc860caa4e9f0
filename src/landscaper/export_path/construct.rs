//! The result that exports build together: each puts its value where its key says, later ones over earlier ones.
//!
//! Source: `Construct` in Landscaper's `pkg/landscaper/dataobjects/jsonpath/jsonpath.go`, and `MergeMaps` in its
//! `pkg/utils/utils.go`.

use serde_json::{Map, Value};

use super::error::{PathError, Problem};
use super::node::{Node, Part};
use super::parse;

/// How deep a result may be nested: what walks through it does so by calls in calls.
const MAX_LEVELS: usize = 256;

/// The levels that a key names: for each template group, the fields of it.
///
/// # Errors
/// When the key cannot be read, names anything but fields, or more than 256 of them.
pub fn key(text: &str) -> Result<Vec<Vec<String>>, PathError> {
    let groups = parse::groups(text).map_err(|error| error.of(text))?;
    let named = groups.iter().map(|group| match &group.part {
        Part::List(nodes) => nodes.iter().map(field).collect(),
        other => Err(PathError::new(Problem::Unsupported(other.name()), group.at)),
    });
    let named: Vec<Vec<String>> = named.collect::<Result<_, _>>().map_err(|error: PathError| error.of(text))?;
    if named.iter().map(Vec::len).sum::<usize>() > MAX_LEVELS {
        return Err(PathError::new(Problem::TooComplex, 0).of(text));
    }
    Ok(named)
}

fn field(node: &Node) -> Result<String, PathError> {
    match &node.part {
        Part::Field(name) => Ok(name.clone()),
        other => Err(PathError::new(Problem::Unsupported(other.name()), node.at)),
    }
}

/// The object that has `value` where `text` says.
///
/// # Errors
/// When the key cannot be read, or names anything but fields.
pub fn construct(text: &str, value: &Value) -> Result<Value, PathError> {
    let mut object = Map::new();
    // Landscaper goes on with a further group where the one before it put its value.
    let mut parents: Vec<String> = Vec::new();
    for mut fields in key(text)? {
        let Some(last) = fields.pop() else { continue };
        parents.append(&mut fields);
        parent(&mut object, &parents).insert(last, value.clone());
    }
    Ok(Value::Object(object))
}

fn parent<'m>(object: &'m mut Map<String, Value>, path: &[String]) -> &'m mut Map<String, Value> {
    let mut members = object;
    for name in path {
        let below = members.entry(name.clone()).or_insert(Value::Null);
        if !below.is_object() {
            *below = Value::Object(Map::new());
        }
        let Value::Object(inner) = below else { unreachable!("it was just made an object") };
        members = inner;
    }
    members
}

/// Puts `from` over `into`: objects member by member, anything else as a whole.
pub fn merge(into: &mut Value, from: Value) {
    // Both come from objects, whose depth is bounded where they are read; keys by the length of a path.
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                match into.get_mut(&key) {
                    Some(below) => merge(below, value),
                    None => drop(into.insert(key, value)),
                }
            }
        }
        (into, from) => *into = from,
    }
}
