//! Parses the Kubernetes objects in files and texts.
//!
//! Source: kustomize's `api/resource/factory.go` and `ByteReader` of kyaml.

use std::collections::{HashMap, HashSet};

use super::json;
use super::resource::Resource;
use crate::kustomize::bad_objects::BadObjects;
use crate::kustomize::node::{Entry, Kind, Node, Unprintable, UnprintableKind};
use crate::yaml::{self, Limits};

const LIST: &str = "List";
const RESOURCE_LIST: &str = "ResourceList";

/// Parses the objects in a file. `source` is the number of the file in [`Sources`](super::Sources).
///
/// # Errors
///
/// If kustomize rejects the file, or if it is unknown how kustomize reads it. For example, the file is UTF-16.
pub(super) fn objects(bytes: &[u8], source: u32) -> Result<Vec<Resource>, BadObjects> {
    let text = crate::kustomize::file::text(bytes).map_err(|bad| match bad {
        crate::kustomize::file::BadFile::Encoding(at) => BadObjects::Encoding(at),
        _ => BadObjects::Utf16,
    })?;
    objects_of_text(text, source)
}

/// Parses objects from a YAML text. `source` is the number of the file that contains the text.
///
/// # Errors
///
/// If kustomize rejects the text, or if it is unknown how kustomize reads it. For example, an object has two different
/// values of `kind`.
pub(super) fn objects_of_text(text: &str, source: u32) -> Result<Vec<Resource>, BadObjects> {
    let limits = Limits::default();
    let is_one = yaml::is_one_manifest(text);
    let mut nodes = Vec::new();
    for node in yaml::nodes(text, source, &limits) {
        let node = node.map_err(BadObjects::Yaml)?;
        match is_plain_list(&node) && is_one {
            true => nodes.extend(plain_items(&node)?),
            false => nodes.push(node),
        }
    }
    let nodes = opened(checked(nodes)?)?;
    nodes.iter().try_for_each(unambiguous)?;
    Ok(nodes.into_iter().map(Resource::new).collect())
}

fn is_plain_list(node: &Node) -> bool {
    let kind = node.get("kind").and_then(Node::text);
    matches!(kind, Some(LIST | RESOURCE_LIST)) && (node.get("items").is_some() || node.get("functionConfig").is_some())
}

/// Returns the items of a List object. If `items` is a mapping with entries, returns an error. In this case, kyaml
/// treats the keys and values as items, and rejects them because they are not objects.
fn plain_items(list: &Node) -> Result<Vec<Node>, BadObjects> {
    match list.get("items") {
        Some(items) if items.is_map() && !items.entries().is_empty() => Err(BadObjects::NoObject(items.origin)),
        items => Ok(items.map(Node::items).unwrap_or_default().to_vec()),
    }
}

/// Drops empty documents, and rejects documents that are not objects.
fn checked(nodes: Vec<Node>) -> Result<Vec<Node>, BadObjects> {
    let nodes: Vec<Node> = nodes.into_iter().filter(|node| !node.is_null_or_empty()).collect();
    nodes.iter().try_for_each(check)?;
    Ok(nodes)
}

/// Checks that a node is an object with a kind and a name. An object whose kind ends with `List` needs no name.
///
/// # Errors
///
/// If the node is not an object, or has no kind or no name.
pub(super) fn check(node: &Node) -> Result<(), BadObjects> {
    fn text(node: Option<&Node>) -> &str {
        node.filter(|node| !node.is_null()).and_then(Node::text).unwrap_or_default()
    }
    let fields = ["apiVersion", "kind", "metadata"];
    if !node.is_map() || !fields.iter().any(|field| node.get(field).is_some()) {
        return Err(BadObjects::NoObject(node.origin));
    }
    let kind = text(node.get("kind"));
    if kind.is_empty() {
        return Err(BadObjects::NoKind(node.origin));
    }
    let name = text(node.at_path(&["metadata", "name"]));
    if name.is_empty() && !kind.ends_with(LIST) {
        return Err(BadObjects::NoName { kind: kind.to_owned(), origin: node.origin });
    }
    Ok(())
}

/// Returns an error if `apiVersion`, `kind`, a label or an annotation of an object occurs several times with different
/// values. It is then unknown which of the values kustomize uses. Duplicates of `metadata`, its `name` and its
/// `namespace` are allowed, because kustomize uses the first value.
fn unambiguous(node: &Node) -> Result<(), BadObjects> {
    let ambiguous = |what| Err(BadObjects::Ambiguous(what, node.origin));
    let metadata = node.get("metadata");
    let decisive = |entry: &&Entry| matches!(&*entry.key, "apiVersion" | "kind");
    if has_duplicates(node.entries().iter().filter(decisive)) {
        return ambiguous("a duplicate apiVersion or kind");
    }
    for field in ["labels", "annotations"] {
        let values = metadata.and_then(|metadata| metadata.get(field));
        if has_duplicates(values.map(Node::entries).unwrap_or_default().iter()) {
            return ambiguous("duplicate labels or annotations");
        }
    }
    Ok(())
}

/// Returns whether a key occurs several times with different values.
fn has_duplicates<'n>(mut entries: impl Iterator<Item = &'n Entry>) -> bool {
    let mut values = HashMap::new();
    entries
        .any(|entry| values.insert(&*entry.key, &entry.value).is_some_and(|other| other.text() != entry.value.text()))
}

/// Replaces objects whose kind ends with `List` with their items. Moves these items behind all other objects. A list
/// without the field `items` stays unchanged.
fn opened(nodes: Vec<Node>) -> Result<Vec<Node>, BadObjects> {
    let is_list = |node: &Node| node.get("kind").and_then(Node::text).is_some_and(|kind| kind.ends_with(LIST));
    if !nodes.iter().any(is_list) {
        return Ok(nodes);
    }
    let mut queue: std::collections::VecDeque<Node> = nodes.into();
    let mut objects = Vec::new();
    while let Some(node) = queue.pop_front() {
        if !is_list(&node) {
            objects.push(node);
            continue;
        }
        // kustomize decodes a list, which fails for duplicate keys
        duplicate(&node, "").map_or(Ok(()), Err).map_err(BadObjects::Unprintable)?;
        match node.get("items") {
            Some(items) => queue.extend(items_of(&node, items)?),
            None => objects.push(node),
        }
    }
    Ok(objects)
}

/// Returns an error for the first duplicate key in a node or in the values nested in it; `None` if there is none.
/// `pointer` is the JSON pointer of the node.
fn duplicate(node: &Node, pointer: &str) -> Option<Unprintable> {
    let mut seen = HashSet::new();
    let twice = node.entries().iter().find(|entry| !seen.insert(&*entry.key));
    if let Some(entry) = twice {
        let pointer = format!("{pointer}/{}", entry.key);
        return Some(Unprintable {
            origin: node.origin,
            pointer,
            kind: UnprintableKind::Duplicate(entry.key.to_string()),
        });
    }
    let mut values = node.entries().iter().map(|entry| (&*entry.key, &entry.value));
    let found = values.find_map(|(key, value)| duplicate(value, &format!("{pointer}/{key}")));
    found.or_else(|| node.items().iter().enumerate().find_map(|(at, item)| duplicate(item, &format!("{pointer}/{at}"))))
}

fn items_of(list: &Node, items: &Node) -> Result<Vec<Node>, BadObjects> {
    if items.is_null() {
        return Ok(Vec::new());
    }
    let Kind::Seq(items) = &items.kind else {
        let kind = list.get("kind").and_then(Node::text).unwrap_or_default();
        return Err(BadObjects::Items(kind.to_owned(), items.origin));
    };
    let mut nodes = Vec::new();
    for item in items.iter() {
        let node = json::parsed(&json::of_inner(item).map_err(BadObjects::Unprintable)?, item);
        match is_plain_list(&node) {
            true => nodes.extend(plain_items(&node)?),
            false => nodes.push(node),
        }
    }
    checked(nodes)
}
