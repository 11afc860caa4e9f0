//! JSON patches (RFC 6902) on content of which parts may be unknown.
//!
//! Source: `gopkg.in/evanphx/json-patch.v4`, which kustomize uses.

use serde_json::{Map, Value};

use super::object::Object;
use crate::yaml::{self, Limits};

/// The operations of a patch.
pub type Operations = Vec<Map<String, Value>>;

/// The result of applying a patch.
#[derive(Debug, PartialEq)]
pub enum Applied {
    /// The object is changed.
    Done,
    /// The operation fails, with the reason.
    Refused(String),
    /// The result depends on unknown content.
    Unsure(String),
}

/// Returns the operations of a text: JSON where it begins with `[`, else YAML 1.1.
pub fn read(text: &str) -> Option<Operations> {
    if text.is_empty() {
        return None;
    }
    let value = if text.starts_with('[') {
        serde_json::from_str(text).ok()?
    } else {
        yaml::first(text, &Limits::default()).ok()?.map_or(Value::Null, |document| document.value)
    };
    match value {
        Value::Null => Some(Vec::new()),
        Value::Array(items) => items.into_iter().map(operation).collect(),
        _ => None,
    }
}

fn operation(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(members) => Some(members),
        Value::Null => Some(Map::new()),
        _ => None,
    }
}

/// Applies a patch to an object.
pub fn apply(object: &mut Object, operations: &Operations) -> Applied {
    let mut content = object.content();
    for operation in operations {
        let text = |key: &str| operation.get(key).and_then(Value::as_str);
        let (Some(op), Some(path)) = (text("op"), text("path")) else {
            return Applied::Unsure("an operation has no op or no path".to_owned());
        };
        if op == "test" {
            return Applied::Unsure("whether a test holds depends on the types of values".to_owned());
        }
        let pointers = [Some(path), text("from")];
        if let Some(uncertain_values) = pointers.into_iter().flatten().find(|pointer| !object.is_clear(pointer)) {
            return Applied::Unsure(format!("what is at {uncertain_values} depends on patches before it"));
        }
        let done = match op {
            "add" => value(operation).and_then(|value| add(&mut content, path, value)),
            "replace" => value(operation).and_then(|value| replace(&mut content, path, value)),
            "remove" => remove(&mut content, path).map(|_| ()),
            "move" => {
                from(operation).and_then(|from| remove(&mut content, from)).and_then(|v| add(&mut content, path, v))
            }
            "copy" => from(operation).and_then(|from| get(&content, from)).and_then(|v| add(&mut content, path, v)),
            other => return Applied::Refused(format!("there is no operation {other}")),
        };
        match done {
            Ok(()) => {}
            Err(Failure::Refused(why)) => return Applied::Refused(format!("{op} {path}: {why}")),
            Err(Failure::Unsure) => return Applied::Unsure(format!("{op} {path}")),
        }
    }
    object.replace(content);
    Applied::Done
}

enum Failure {
    Refused(String),
    Unsure,
}

type Outcome<T> = Result<T, Failure>;

fn refused<T>(why: impl Into<String>) -> Outcome<T> {
    Err(Failure::Refused(why.into()))
}

/// Returns the value of an operation; scalars are text, like all content here.
fn value(operation: &Map<String, Value>) -> Outcome<Value> {
    operation.get("value").map(as_text).ok_or(Failure::Unsure)
}

fn as_text(value: &Value) -> Value {
    match value {
        Value::Bool(flag) => Value::String(flag.to_string()),
        Value::Number(number) => Value::String(number.to_string()),
        Value::Array(items) => items.iter().map(as_text).collect(),
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), as_text(value))).collect(),
        other => other.clone(),
    }
}

fn from(operation: &Map<String, Value>) -> Outcome<&str> {
    operation.get("from").and_then(Value::as_str).ok_or(Failure::Unsure)
}

fn split(path: &str) -> Outcome<(Vec<String>, String)> {
    let Some(rest) = path.strip_prefix('/') else { return Err(Failure::Unsure) };
    let mut steps: Vec<_> = rest.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
    let last = steps.pop().ok_or(Failure::Unsure)?;
    Ok((steps, last))
}

fn parent<'v>(content: &'v mut Value, steps: &[String]) -> Outcome<&'v mut Value> {
    let mut at = content;
    for step in steps {
        at = match at {
            Value::Object(members) => match members.get_mut(step) {
                Some(next) => next,
                None => return refused(format!("there is no {step}")),
            },
            Value::Array(items) => {
                let index: usize = step.parse().map_err(|_| Failure::Unsure)?;
                match items.get_mut(index) {
                    Some(next) => next,
                    None => return refused(format!("the list has no item {index}")),
                }
            }
            _ => return refused(format!("{step} would be below a scalar")),
        };
    }
    Ok(at)
}

fn add(content: &mut Value, path: &str, value: Value) -> Outcome<()> {
    let (steps, last) = split(path)?;
    match parent(content, &steps)? {
        Value::Object(members) => {
            members.insert(last, value);
            Ok(())
        }
        Value::Array(items) if last == "-" => {
            items.push(value);
            Ok(())
        }
        Value::Array(items) => {
            let index: usize = last.parse().map_err(|_| Failure::Unsure)?;
            if index > items.len() {
                return refused(format!("the list has {} items", items.len()));
            }
            items.insert(index, value);
            Ok(())
        }
        _ => refused("a scalar has no fields"),
    }
}

fn replace(content: &mut Value, path: &str, value: Value) -> Outcome<()> {
    let (steps, last) = split(path)?;
    match parent(content, &steps)? {
        // The library also sets missing members.
        Value::Object(members) => {
            members.insert(last, value);
            Ok(())
        }
        Value::Array(items) => {
            let index: usize = last.parse().map_err(|_| Failure::Unsure)?;
            match items.get_mut(index) {
                Some(old) => {
                    *old = value;
                    Ok(())
                }
                None => refused(format!("the list has {} items", items.len())),
            }
        }
        _ => refused("a scalar has no fields"),
    }
}

fn remove(content: &mut Value, path: &str) -> Outcome<Value> {
    let (steps, last) = split(path)?;
    match parent(content, &steps)? {
        Value::Object(members) => {
            members.remove(&last).ok_or_else(|| Failure::Refused("there is nothing to remove".into()))
        }
        Value::Array(items) => {
            let index: usize = last.parse().map_err(|_| Failure::Unsure)?;
            if index >= items.len() {
                return refused(format!("the list has {} items", items.len()));
            }
            Ok(items.remove(index))
        }
        _ => refused("a scalar has no fields"),
    }
}

fn get(content: &Value, path: &str) -> Outcome<Value> {
    content.pointer(path).cloned().ok_or(Failure::Unsure)
}
