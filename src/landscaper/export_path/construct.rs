//! Builds the JSON object with the exported values. The key of an export is a path. The value of the export is written
//! at this path. If two exports write to the same path, and both values are objects, these objects are merged.
//! Otherwise, the later value replaces the earlier one.
//!
//! Source: `Construct` in Landscaper's `pkg/landscaper/dataobjects/jsonpath/jsonpath.go`, and `MergeMaps` in its
//! `pkg/utils/utils.go`.

use serde_json::{Map, Value};

use super::error::{PathError, Problem};
use super::node::{Node, Part};
use super::parse;

/// Maximum number of field names in the key of an export. Each field name adds a nesting level to the exported object.
/// The limit is needed because such objects are merged recursively.
const MAX_LEVELS: usize = 256;

/// Parses the key of an export. Returns one list of field names for each template group (`{…}`) of the key.
///
/// # Errors
/// Fails if the key is invalid or too long, contains parts other than fields, or has more than 256 fields.
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

/// Builds a JSON object that contains `value` at the path `text`, which is the key of an export. For the key `.a.b`,
/// the result is `{"a": {"b": value}}`.
///
/// # Errors
/// Fails in the same cases as [`key`].
pub fn construct(text: &str, value: &Value) -> Result<Value, PathError> {
    let mut object = Map::new();
    // In Landscaper, each group starts at the parent of the previous group's value.
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

/// Merges the JSON value `from` into `into`: objects are merged recursively, other values are replaced.
pub fn merge(into: &mut Value, from: Value) {
    // The recursion is bounded: objects have a bounded depth when they are read, and keys have at most MAX_LEVELS
    // fields.
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
