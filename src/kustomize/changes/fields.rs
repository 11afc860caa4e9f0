//! Compares the fields of two versions of an object.
//!
//! Elements of lists are compared by the merge keys of kustomize's schema. Some lists have no merge keys, such as lists
//! in custom resources. Their elements are compared by `name` if all names are different, and otherwise by position.

use std::collections::BTreeSet;

use super::object::Object;
use super::secret;
use crate::kustomize::emit::{self, value::Value};
use crate::kustomize::engine::Built;
use crate::kustomize::node::{Kind, Node, printed};
use crate::kustomize::schema::{FieldSchema, Schema};
use crate::kustomize::tree::TreePath;

/// Maximum length of a value in a report, in characters. The report also has the position of the whole value.
const MAX_VALUE_LENGTH: usize = 120;

/// A changed field of an object, with its old and new value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldChange {
    /// The path of the changed field, such as `spec.template.spec.containers[name=web].image`.
    pub path: String,
    /// The old value; `None` if the field is new.
    pub before: Option<Located>,
    /// The new value; `None` if the field was removed.
    pub after: Option<Located>,
}

/// The old or new value of a field, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The value as YAML in one line, truncated to `MAX_VALUE_LENGTH` characters. A value of a Secret is replaced by a
    /// hash.
    pub value: String,
    /// File and line of the value. The file is relative to the tree. `None` if the value is not in a file.
    pub place: Option<(TreePath, usize)>,
}

/// Returns the fields in which two objects differ. The fields have the order of the new object. Removed fields come
/// last in their mapping.
pub(super) fn between(old: (&Object, &Built<'_>), new: (&Object, &Built<'_>)) -> Vec<FieldChange> {
    let schema = Schema::built_in();
    let shape = schema.of_kind(&new.0.api_version, &new.0.id.kind);
    let hides = new.0.is_secret() || old.0.is_secret();
    let mut comparison = Comparison { old: old.1, new: new.1, hides, found: Vec::new() };
    comparison.nodes(String::new(), &old.0.node, &new.0.node, shape);
    comparison.found
}

struct Comparison<'b, 'a> {
    old: &'b Built<'a>,
    new: &'b Built<'a>,
    /// Whether one of the two compared objects is a Secret. The values of Secrets are hidden.
    hides: bool,
    found: Vec<FieldChange>,
}

impl Comparison<'_, '_> {
    fn nodes(&mut self, path: String, old: &Node, new: &Node, shape: Option<FieldSchema<'_>>) {
        match (&old.kind, &new.kind) {
            (Kind::Map(_), Kind::Map(_)) => self.maps(&path, old, new, shape),
            (Kind::Seq(old_items), Kind::Seq(new_items)) => self.lists(&path, old_items, new_items, shape),
            _ if text(old) == text(new) => {}
            _ => self.add(path, Some(old), Some(new)),
        }
    }

    fn maps(&mut self, path: &str, old: &Node, new: &Node, shape: Option<FieldSchema<'_>>) {
        for entry in new.entries() {
            let below = member(path, &entry.key);
            match old.get(&entry.key) {
                Some(before) => {
                    self.nodes(below, before, &entry.value, shape.and_then(|shape| shape.field(&entry.key)))
                }
                None => self.add(below, None, Some(&entry.value)),
            }
        }
        for entry in old.entries().iter().filter(|entry| new.get(&entry.key).is_none()) {
            self.add(member(path, &entry.key), Some(&entry.value), None);
        }
    }

    fn lists(&mut self, path: &str, old: &[Node], new: &[Node], shape: Option<FieldSchema<'_>>) {
        let elements = shape.and_then(FieldSchema::elements);
        match keys(shape, old, new) {
            Some(key) => self.keyed(path, &key, (old, new), elements),
            None => self.positional(path, old, new, elements),
        }
    }

    /// Compares two lists. Pairs the elements that have the same values of the merge keys `keys`.
    fn keyed(&mut self, path: &str, keys: &[&str], (old, new): (&[Node], &[Node]), shape: Option<FieldSchema<'_>>) {
        for element in new {
            let below = format!("{path}[{}]", label(element, keys));
            match old.iter().find(|before| label(before, keys) == label(element, keys)) {
                Some(before) => self.nodes(below, before, element, shape),
                None => self.add(below, None, Some(element)),
            }
        }
        let is_gone = |before: &&Node| !new.iter().any(|element| label(element, keys) == label(before, keys));
        for before in old.iter().filter(is_gone) {
            self.add(format!("{path}[{}]", label(before, keys)), Some(before), None);
        }
    }

    /// Compares the elements of two lists by position. Skips equal elements at the start and at the end of both lists.
    fn positional(&mut self, path: &str, old: &[Node], new: &[Node], shape: Option<FieldSchema<'_>>) {
        let is_same = |(old, new): &(&Node, &Node)| text(old) == text(new);
        let head = old.iter().zip(new).take_while(is_same).count();
        let (old, new) = (&old[head..], &new[head..]);
        let tail = old.iter().rev().zip(new.iter().rev()).take_while(is_same).count();
        let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
        for at in 0..old.len().max(new.len()) {
            let below = format!("{path}[{}]", head + at);
            match (old.get(at), new.get(at)) {
                (Some(before), Some(after)) => self.nodes(below, before, after, shape),
                (before, after) => self.add(below, before, after),
            }
        }
    }

    fn add(&mut self, path: String, old: Option<&Node>, new: Option<&Node>) {
        let hides = self.hides && is_hidden(&path);
        let located = |node: &Node, built: &Built<'_>| {
            let value = text(node);
            let value = if hides { secret::hidden(&value) } else { shortened(&value) };
            Located { value, place: built.place(node) }
        };
        let before = old.map(|node| located(node, self.old));
        let after = new.map(|node| located(node, self.new));
        self.found.push(FieldChange { path, before, after });
    }
}

/// Returns whether reports hide the value of a Secret's field with the path `path`. They hide the fields in
/// [`secret::FIELDS`]. They also hide the annotations, because these may contain a copy of the values.
fn is_hidden(path: &str) -> bool {
    let is_below =
        |field: &str| path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
    secret::FIELDS.into_iter().chain(["metadata.annotations"]).any(is_below)
}

/// Returns the keys by which the elements of two lists are compared: the merge keys in the schema of the list, or
/// `name`. `None` if these keys do not identify the elements. The elements must then be compared by position.
fn keys<'s>(shape: Option<FieldSchema<'s>>, old: &[Node], new: &[Node]) -> Option<Vec<&'s str>> {
    let of_schema: Vec<&str> = shape.filter(|shape| shape.merges()).into_iter().flat_map(FieldSchema::keys).collect();
    let tells = |keys: &[&str], list: &[Node]| {
        let labels: BTreeSet<String> = list.iter().map(|element| label(element, keys)).collect();
        labels.len() == list.len() && list.iter().all(|element| keys.iter().any(|key| element.get(key).is_some()))
    };
    let candidates = [of_schema, vec!["name"]];
    candidates.into_iter().find(|keys| !keys.is_empty() && tells(keys, old) && tells(keys, new))
}

/// Returns the merge keys of a list element with their values, such as `containerPort=80,protocol=TCP`.
fn label(element: &Node, keys: &[&str]) -> String {
    let pair = |key: &&str| element.get(key).and_then(Node::text).map(|value| format!("{key}={value}"));
    keys.iter().filter_map(pair).collect::<Vec<_>>().join(",")
}

/// Returns the path of the key `key` in the mapping at `path`, such as `spec.replicas`. Quotes the key unless it has
/// only letters, digits, `-` and `_`.
fn member(path: &str, key: &str) -> String {
    let is_name = !key.is_empty() && key.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter));
    match (path, is_name) {
        ("", true) => key.to_owned(),
        (_, true) => format!("{path}.{key}"),
        (_, false) => format!("{path}[{key:?}]"),
    }
}

/// Formats a value as YAML in one line.
fn text(node: &Node) -> String {
    let Ok(value) = printed(node) else { return node.text().unwrap_or_default().to_owned() };
    if let Value::Text(text) = &value
        && text.contains('\n')
    {
        return format!("{text:?}");
    }
    if matches!(value, Value::List(_) | Value::Map(_)) {
        return json(&value).to_string();
    }
    let mut out = String::new();
    match emit::document(&value, &mut out) {
        Ok(()) => out.trim_end().to_owned(),
        Err(_) => node.text().unwrap_or_default().to_owned(),
    }
}

fn json(value: &Value<'_>) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Uint(value) => (*value).into(),
        Value::Float(value) => (*value).into(),
        Value::Text(text) => (&**text).into(),
        Value::List(items) => items.iter().map(json).collect(),
        Value::Map(entries) => entries.iter().map(|(key, value)| (key.to_string(), json(value))).collect(),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_VALUE_LENGTH) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
