//! JSON patches (RFC 6902), with the deviations of kustomize's library.
//!
//! Source: kustomize's `api/filters/patchjson6902` and version 4 of the library json-patch.

use serde_json::Value;

use super::budget::Budget;
use super::json;
use super::stop::Failed;
use crate::admission::json as go_json;
use crate::kustomize::node::{Node, Origin};
use crate::kustomize::rules::kz013::fault_words;
use crate::yaml::{self, Limits};

/// A list of operations.
#[derive(Debug, Clone)]
pub(super) struct Patch {
    operations: Vec<Value>,
}

/// The result of an operation, or why it fails.
type Applied<T> = Result<T, Failed>;

impl Patch {
    /// Parses operations: JSON if the text begins with `[`, otherwise YAML 1.1.
    ///
    /// # Errors
    ///
    /// If the text is not a list of operations.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let value = if text.starts_with('[') {
            serde_json::from_str(text).map_err(|error| error.to_string())?
        } else if text.is_empty() {
            return Err("it is empty".to_owned());
        } else {
            let document = yaml::first(text, &Limits::default()).map_err(|error| error.to_string())?;
            document.map_or(Value::Null, |document| document.value)
        };
        match value {
            Value::Null => Ok(Self { operations: Vec::new() }),
            Value::Array(operations) if operations.iter().all(|one| one.is_object() || one.is_null()) => {
                Ok(Self { operations })
            }
            _ => Err("it is no list of operations".to_owned()),
        }
    }

    /// Returns whether the list of operations is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Applies the operations to an object.
    ///
    /// # Errors
    ///
    /// If an operation fails, or the object cannot be converted to JSON.
    pub(super) fn apply(&self, node: &mut Node, origin: Origin, budget: &Budget) -> Result<(), Failed> {
        let mut value = json::of_node(node).map_err(|error| fault_words(&error))?;
        for operation in &self.operations {
            let text = |key: &str| operation[key].as_str().unwrap_or_default();
            let words = || format!("{} {}", text("op"), text("path"));
            apply(&mut value, operation, budget).map_err(|failed| failed.within(&words()))?;
        }
        let value = json::with_floats(value);
        if !value.is_object() {
            return Err("what remains is no object".into());
        }
        let mut patched = json::to_node(&value, origin);
        json::restore_origins(&mut patched, node);
        *node = patched;
        Ok(())
    }
}

fn apply(document: &mut Value, operation: &Value, budget: &Budget) -> Applied<()> {
    let path = || operation["path"].as_str().ok_or("it has no path");
    let from = || operation["from"].as_str().ok_or("it has no `from`");
    let value = || -> Applied<Value> {
        let value = operation.get("value").cloned().unwrap_or(Value::Null);
        budget.json(&value)?;
        Ok(value)
    };
    match operation["op"].as_str().unwrap_or_default() {
        "add" => add(document, path()?, value()?),
        "remove" => remove(document, path()?).map(drop),
        "replace" => replace(document, path()?, value()?),
        "move" => {
            let moved = remove(document, from()?)?;
            add(document, path()?, moved)
        }
        "copy" => {
            let copied = get(document, from()?)?;
            budget.json(copied)?;
            let copied = copied.clone();
            add(document, path()?, copied)
        }
        "test" => test(document, path()?, &value()?),
        other => Err(format!("`{other}` is no operation").into()),
    }
}

/// Splits a path into steps; text before the first `/` is ignored.
fn steps(path: &str) -> Vec<String> {
    path.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect()
}

/// Returns the container that a path leads to, and the last step.
fn container<'v>(document: &'v mut Value, path: &str) -> Applied<(&'v mut Value, String)> {
    let mut steps = steps(path);
    let last = steps.pop().ok_or_else(|| format!("there is nothing at `{path}`"))?;
    let mut at = document;
    for step in steps {
        at = child_mut(at, &step).ok_or_else(|| format!("`{path}` leads nowhere: there is no `{step}`"))?;
    }
    if at.is_object() || at.is_array() {
        Ok((at, last))
    } else {
        Err(format!("`{path}` leads through a scalar").into())
    }
}

fn child_mut<'v>(value: &'v mut Value, step: &str) -> Option<&'v mut Value> {
    match value {
        Value::Object(members) => members.get_mut(step),
        Value::Array(items) => {
            let at = index(step, items.len()).ok()?;
            items.get_mut(at)
        }
        _ => None,
    }
}

/// Returns the index of an existing element; a negative index is relative to the end.
fn index(step: &str, len: usize) -> Applied<usize> {
    let index: i64 = step.parse().map_err(|_| format!("`{step}` is no index"))?;
    let at = if index < 0 { index + len as i64 } else { index };
    usize::try_from(at).ok().filter(|at| *at < len).ok_or_else(|| format!("there is no element {step}").into())
}

fn get<'v>(document: &'v mut Value, path: &str) -> Applied<&'v mut Value> {
    if steps(path).is_empty() {
        return Ok(document);
    }
    let (container, last) = container(document, path)?;
    child_mut(container, &last).ok_or_else(|| format!("there is nothing at `{path}`").into())
}

fn add(document: &mut Value, path: &str, value: Value) -> Applied<()> {
    if steps(path).is_empty() {
        *document = value;
        return Ok(());
    }
    let (container, last) = container(document, path)?;
    match container {
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => {
            let at = index(&last, items.len() + 1)?;
            items.insert(at, value);
        }
        Value::Object(members) => drop(members.insert(last, value)),
        _ => {}
    }
    Ok(())
}

fn replace(document: &mut Value, path: &str, value: Value) -> Applied<()> {
    if steps(path).is_empty() {
        *document = value;
        return Ok(());
    }
    let (container, last) = container(document, path)?;
    match container {
        Value::Array(items) => {
            let at = index(&last, items.len())?;
            items[at] = value;
        }
        Value::Object(members) => drop(members.insert(last, value)),
        _ => {}
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Applied<Value> {
    let (container, last) = container(document, path)?;
    let missing = || Failed::from(format!("there is nothing to remove at `{path}`"));
    match container {
        Value::Array(items) => {
            let at = index(&last, items.len())?;
            Ok(items.remove(at))
        }
        Value::Object(members) => members.remove(&last).ok_or_else(missing),
        _ => Err(missing()),
    }
}

fn test(document: &mut Value, path: &str, wanted: &Value) -> Applied<()> {
    let found = get(document, path).ok().cloned().unwrap_or(Value::Null);
    if is_equal(&found, wanted) { Ok(()) } else { Err(format!("`{path}` is {}", go_json::brief(&found)).into()) }
}

/// Returns whether two values are equal; numbers are compared by value.
fn is_equal(a: &Value, b: &Value) -> bool {
    json::with_floats(a.clone()) == json::with_floats(b.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(mut document: Value, operations: Value) -> Result<Value, Failed> {
        let Value::Array(operations) = operations else { panic!("no list") };
        operations
            .iter()
            .try_for_each(|operation| apply(&mut document, operation, &Budget::default()))
            .map(|()| document)
    }

    #[test]
    fn replace_adds_a_missing_key() {
        let operation = json!([{"op": "replace", "path": "/b", "value": 1}]);
        assert_eq!(patched(json!({"a": 0}), operation), Ok(json!({"a": 0, "b": 1})));
    }

    #[test]
    fn negative_indices_count_from_the_end() {
        let add = |path: &str| patched(json!({"a": [1, 2]}), json!([{"op": "add", "path": path, "value": 3}]));
        assert_eq!(add("/a/-1"), Ok(json!({"a": [1, 2, 3]})));
        assert_eq!(add("/a/2"), Ok(json!({"a": [1, 2, 3]})));
        assert!(add("/a/3").is_err());
    }

    #[test]
    fn the_first_segment_of_a_path_without_a_slash_is_lost() {
        let operation = json!([{"op": "add", "path": "spec/big", "value": 1}]);
        assert_eq!(patched(json!({}), operation), Ok(json!({"big": 1})));
    }

    #[test]
    fn operations_fail_where_there_is_nothing() {
        for operation in [
            json!({"op": "remove", "path": "/x"}),
            json!({"op": "add", "path": "/x/y", "value": 1}),
            json!({"op": "test", "path": "/a", "value": 2}),
            json!({"op": "replace", "path": "/l/-", "value": 1}),
        ] {
            assert!(patched(json!({"a": 1, "l": [1]}), json!([operation])).is_err());
        }
    }
}
