//! JSON patches (RFC 6902) as kustomize applies them. The JSON patch library of kustomize deviates from the RFC.
//!
//! Source: kustomize's `api/filters/patchjson6902` and version 4 of the library json-patch.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::budget::Budget;
use super::json;
use super::patched_json::Tree;
use super::stop::Failed;
use crate::admission::json as admission_json;
use crate::go;
use crate::kustomize::node::{Node, Origin};
use crate::yaml::{self, Limits};

/// A JSON patch: a list of operations.
#[derive(Debug, Clone)]
pub(super) struct Patch {
    operations: Vec<Operation>,
}

/// An operation of a JSON patch. `op`, `path` and `from` are `None` if they are missing or not strings.
#[derive(Debug, Clone, Default)]
struct Operation {
    op: Option<String>,
    path: Option<String>,
    from: Option<String>,
    /// The member `value` of the operation; [`Tree::Null`] if it is missing.
    value: Tree,
}

/// The members of a JSON patch operation, such as `path`, with their JSON texts; `None` stands for null.
type Members<'t> = BTreeMap<String, Option<&'t RawValue>>;

/// The result of a JSON patch operation, or the reason why it fails.
type Applied<T> = Result<T, Failed>;

impl Patch {
    /// Parses the operations of a JSON patch. If the text begins with `[`, it is parsed as JSON, otherwise as YAML 1.1.
    ///
    /// # Errors
    ///
    /// If the text is not a list of operations, or is nested too deeply.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        if text.starts_with('[') {
            // this parser limits the depth
            go::json::parse(text).map_err(|error| error.to_string())?;
            return Self::of_json(text);
        }
        if text.is_empty() {
            return Err("it is empty".to_owned());
        }
        let document = yaml::first(text, &Limits::default()).map_err(|error| error.to_string())?;
        Self::of_json(&go::json::marshal(&document.map_or(Value::Null, |document| document.value)))
    }

    fn of_json(text: &str) -> Result<Self, String> {
        let operations: Option<Vec<Option<Members<'_>>>> =
            serde_json::from_str(text).map_err(|_| "it is not a list of operations".to_owned())?;
        let read = |members: Option<Members<'_>>| members.map(Operation::read).unwrap_or_default();
        Ok(Self { operations: operations.unwrap_or_default().into_iter().map(read).collect() })
    }

    /// Returns whether the list of operations is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Returns whether an operation adds a mapping with the key `<<`. kustomize interprets this key as a merge key
    /// after the patch.
    pub(super) fn adds_merge_key(&self) -> bool {
        self.operations.iter().any(|operation| operation.value.has_key("<<"))
    }

    /// Returns whether an operation copies, moves or tests all annotations of an object, or a value that contains them.
    /// kustomize stores state in these annotations.
    pub(super) fn reads_annotations(&self) -> bool {
        self.operations.iter().any(|operation| {
            let read = match operation.op.as_deref() {
                Some("copy" | "move") => operation.from.as_deref(),
                Some("test") => operation.path.as_deref(),
                _ => None,
            };
            read.is_some_and(|path| match steps(path).as_slice() {
                [] => operation.op.as_deref() == Some("test") && path.is_empty(),
                [first] => first == "metadata",
                [first, second] => first == "metadata" && second == "annotations",
                _ => false,
            })
        })
    }

    /// Applies the operations to an object. `origin` is the file and line of the kustomization entry with the patch. It
    /// becomes the origin of the values that the operations change.
    ///
    /// # Errors
    ///
    /// If an operation fails, or the result is not an object. If the object cannot be converted to JSON, or the result
    /// cannot be converted back. If the memory limit of the build is exceeded.
    pub(super) fn apply(&self, node: &mut Node, origin: Origin, budget: &Budget) -> Result<(), Failed> {
        let value = json::of_node(node).map_err(|error| error.to_string())?;
        let mut document = Tree::Unread(value);
        for operation in &self.operations {
            operation.apply(&mut document, budget).map_err(|failed| failed.within(&operation.words()))?;
        }
        let value = json::with_floats(document.into_value()?);
        if !value.is_object() {
            return Err("the result is not an object".into());
        }
        *node = json::to_node(&value, origin, node);
        Ok(())
    }
}

impl Operation {
    fn read(mut members: Members<'_>) -> Self {
        let value = members.remove("value").map_or(Tree::Null, Tree::of_operation);
        let mut text = |key: &str| serde_json::from_str(members.remove(key).flatten()?.get()).ok();
        Self { op: text("op"), path: text("path"), from: text("from"), value }
    }

    fn words(&self) -> String {
        format!("{} {}", self.op.as_deref().unwrap_or_default(), self.path.as_deref().unwrap_or_default())
    }

    fn apply(&self, document: &mut Tree, budget: &Budget) -> Applied<()> {
        let path = || self.path.as_deref().ok_or("it has no path");
        let from = || self.from.as_deref().ok_or("it has no `from`");
        let value = || -> Applied<Tree> {
            self.value.charge(budget)?;
            Ok(self.value.clone())
        };
        match self.op.as_deref().unwrap_or_default() {
            "add" => add(document, path()?, value()?),
            "remove" => remove(document, path()?).map(drop),
            "replace" => replace(document, path()?, value()?),
            "move" => {
                let moved = remove(document, from()?)?;
                add(document, path()?, moved)
            }
            "copy" => {
                let (container, last) = container(document, from()?)?;
                let copied = member(container, &last)?.map_or(&Tree::Null, |copied| &*copied);
                copied.charge(budget)?;
                let copied = copied.copied();
                add(document, path()?, copied)
            }
            "test" => self.test(document, path()?),
            other => Err(format!("`{other}` is not a valid operation").into()),
        }
    }

    fn test(&self, document: &mut Tree, path: &str) -> Applied<()> {
        if path.is_empty() {
            document.read_all();
            return if document.equals(&self.value) { Ok(()) } else { Err("the object has another value".into()) };
        }
        let (container, last) = container(document, path)?;
        let found = member(container, &last)?.map_or(&Tree::Null, |found| &*found);
        let is_equal = match found {
            Tree::Null => self.value.is_null(),
            _ => found.equals(&self.value),
        };
        if is_equal {
            return Ok(());
        }
        let [shown, wanted] =
            [found, &self.value].map(|tree| json::with_floats(tree.clone().into_value().unwrap_or_default()));
        Err(match shown == wanted {
            true => format!("`{path}` is {}, and kustomize compares the JSON text", found.text()).into(),
            false => format!("`{path}` is {}", admission_json::brief(&shown)).into(),
        })
    }
}

/// Splits the path of a JSON patch operation into steps. Ignores text before the first `/`.
fn steps(path: &str) -> Vec<String> {
    path.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect()
}

/// Returns the object or array that directly contains the value at a path, and the last step of the path. Returns an
/// error if the object or array does not exist, or if the path does not contain `/`.
fn container<'v>(document: &'v mut Tree, path: &str) -> Applied<(&'v mut Tree, String)> {
    let mut steps = steps(path);
    let last = steps.pop().ok_or_else(|| format!("`{path}` does not begin with a slash"))?;
    let mut at = document;
    at.read();
    for step in steps {
        at = child_mut(at, &step).ok_or_else(|| format!("`{path}` does not exist: there is no `{step}`"))?;
        at.read();
    }
    if matches!(at, Tree::Object(_) | Tree::Array(_)) {
        Ok((at, last))
    } else {
        Err(format!("`{path}` leads through a scalar").into())
    }
}

fn child_mut<'v>(value: &'v mut Tree, step: &str) -> Option<&'v mut Tree> {
    match value {
        Tree::Object(members) => members.get_mut(step),
        Tree::Array(items) => {
            let at = index(step, items.len()).ok()?;
            items.get_mut(at)
        }
        _ => None,
    }
}

/// Returns the value to which a path step leads. In an object, this is the member `step`, or `None` if it is missing.
/// In an array, this is the element with the index `step`, and an invalid index is an error. Reads all parts of the
/// value that are still [`Tree::Unread`].
fn member<'v>(container: &'v mut Tree, step: &str) -> Applied<Option<&'v mut Tree>> {
    let mut found = match container {
        Tree::Object(members) => members.get_mut(step),
        Tree::Array(items) => {
            let at = index(step, items.len())?;
            items.get_mut(at)
        }
        _ => None,
    };
    if let Some(found) = &mut found {
        found.read_all();
    }
    Ok(found)
}

/// Parses the index of an existing element of an array with `len` elements. A negative index is relative to the end.
fn index(step: &str, len: usize) -> Applied<usize> {
    let index: i64 = step.parse().map_err(|_| format!("`{step}` is not an index"))?;
    let at = if index < 0 { index + len as i64 } else { index };
    usize::try_from(at).ok().filter(|at| *at < len).ok_or_else(|| format!("there is no element {step}").into())
}

fn add(document: &mut Tree, path: &str, value: Tree) -> Applied<()> {
    let (container, last) = container(document, path)?;
    match container {
        Tree::Array(items) if last == "-" => items.push(value),
        Tree::Array(items) => {
            let at = index(&last, items.len() + 1)?;
            items.insert(at, value);
        }
        Tree::Object(members) => drop(members.insert(last, value)),
        _ => {}
    }
    Ok(())
}

fn replace(document: &mut Tree, path: &str, value: Tree) -> Applied<()> {
    if path.is_empty() {
        *document = value;
        return Ok(());
    }
    let (container, last) = container(document, path)?;
    match container {
        Tree::Array(items) => {
            let at = index(&last, items.len())?;
            items[at] = value;
        }
        Tree::Object(members) => drop(members.insert(last, value)),
        _ => {}
    }
    Ok(())
}

fn remove(document: &mut Tree, path: &str) -> Applied<Tree> {
    let (container, last) = container(document, path)?;
    let missing = || Failed::from(format!("there is nothing to remove at `{path}`"));
    match container {
        Tree::Array(items) => {
            let at = index(&last, items.len())?;
            Ok(items.remove(at))
        }
        Tree::Object(members) => members.remove(&last).ok_or_else(missing),
        _ => Err(missing()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(document: Value, operations: Value) -> Result<Value, Failed> {
        let patch = Patch::read(&operations.to_string()).unwrap();
        let mut document = Tree::Unread(document);
        patch.operations.iter().try_for_each(|operation| operation.apply(&mut document, &Budget::default()))?;
        Ok(document.into_value()?)
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
    fn reading_a_value_does_not_change_it() {
        let odd =
            json!({"n": [-0.0, 0, 1e21, 1e-7, u64::MAX, i64::MIN, 1.5, null], "s": ["<&>\u{2028}\u{85}", "", "1"]});
        let mut document = Tree::Unread(odd.clone());
        document.read_all();
        let read = json::with_floats(document.into_value().unwrap());
        assert_eq!(format!("{read:?}"), format!("{:?}", json::with_floats(odd)));
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
            json!({"op": "copy", "from": "/x/y", "path": "/a"}),
            json!({"op": "add", "path": "x", "value": 1}),
        ] {
            assert!(patched(json!({"a": 1, "l": [1]}), json!([operation])).is_err());
        }
    }
}
