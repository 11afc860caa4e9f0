//! Finds all nodes in an object that match a field path of a replacement.
//!
//! Source: `PathMatcher` of kyaml.

use crate::go::regexp;
use crate::kustomize::node::{Entry, Kind, Node, Tag, text_of};
use crate::yaml::{self, Limits};

/// The type of node that is created at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Create {
    Scalar,
    /// A missing node is created as a mapping.
    Map,
    /// A missing node is created as a sequence.
    Seq,
}

impl Create {
    /// Returns the node type of `value`: scalar, mapping or sequence. If a field is missing and is created for this
    /// value, the field gets this type.
    pub(super) fn like(value: &Node) -> Self {
        match value.kind {
            Kind::Scalar(_) => Self::Scalar,
            Kind::Map(_) => Self::Map,
            Kind::Seq(_) => Self::Seq,
        }
    }

    fn node(self) -> Node {
        match self {
            Self::Scalar => Node::new(Kind::Scalar("".into()), Tag::None),
            Self::Map => Node::map(Vec::new()),
            Self::Seq => Node::seq(Vec::new()),
        }
    }

    /// Returns a new empty node for a missing step of a field path. `next` is the step that follows it in the path. The
    /// node is a sequence if `next` selects a list element, and a mapping if `next` names a field. If `next` is `None`,
    /// the path ends at this node, and the node has the type `self`.
    fn before(self, next: Option<&String>) -> Node {
        match next {
            None => self.node(),
            Some(next) if is_selector(next) || next.parse::<usize>().is_ok() => Self::Seq.node(),
            Some(_) => Self::Map.node(),
        }
    }
}

/// The path to a node, as the indexes of mapping entries and sequence elements.
pub(super) type Way = Vec<usize>;

/// Returns the paths of all nodes below `node` that match the field path `steps`. If `create` is set, also creates
/// missing nodes. The last node of a created path then has the type `create`.
///
/// Each returned path is a list of indexes. A path is `None` if the matched node is not part of the object, for example
/// because it is inside a string that contains YAML.
///
/// # Errors
///
/// If a step is invalid, or cannot be applied to a node. For example, a step names a field, but the node is a list.
pub(super) fn find(node: &mut Node, steps: &[String], create: Option<Create>) -> Result<Vec<Option<Way>>, String> {
    let mut found = Vec::new();
    walk(node, steps, create, &mut Vec::new(), &mut found)?;
    Ok(found)
}

/// Returns the node below `node` at the path `way`. Each number in the path is the index of a mapping entry or of a
/// sequence element. `None` if there is no such node.
pub(super) fn node<'n>(node: &'n Node, way: &[usize]) -> Option<&'n Node> {
    way.iter().try_fold(node, |node, at| match &node.kind {
        Kind::Map(entries) => entries.get(*at).map(|entry| &entry.value),
        Kind::Seq(items) => items.get(*at),
        Kind::Scalar(_) => None,
    })
}

/// Returns a mutable reference to the node at the path `way` below `node`. Each index in the path selects an entry of a
/// mapping or an element of a sequence. `None` if the path does not exist.
pub(super) fn node_mut<'n>(node: &'n mut Node, way: &[usize]) -> Option<&'n mut Node> {
    way.iter().try_fold(node, |node, at| match node.kind {
        Kind::Map(_) => node.entries_mut()?.get_mut(*at).map(|entry| &mut entry.value),
        Kind::Seq(_) => node.items_mut()?.get_mut(*at),
        Kind::Scalar(_) => None,
    })
}

fn is_selector(step: &str) -> bool {
    step.starts_with('[') && step.ends_with(']')
}

fn walk(
    node: &mut Node,
    steps: &[String],
    create: Option<Create>,
    way: &mut Way,
    found: &mut Vec<Option<Way>>,
) -> Result<(), String> {
    let Some((step, rest)) = steps.split_first() else {
        found.push(Some(way.clone()));
        return Ok(());
    };
    if let Ok(index) = step.parse::<usize>() {
        return element(node, index, rest, create, way, found);
    }
    if is_selector(step) {
        return selected(node, step, rest, create, way, found);
    }
    if step == "*" {
        return each(node, way, |node, way| walk(node, rest, create, way, found));
    }
    field(node, step, rest, create, way, found)
}

fn field(
    node: &mut Node,
    step: &str,
    rest: &[String],
    create: Option<Create>,
    way: &mut Way,
    found: &mut Vec<Option<Way>>,
) -> Result<(), String> {
    if node.is_null() {
        return detached(Node::map(Vec::new()), create, found, |node, way, found| {
            field(node, step, rest, create, way, found)
        });
    }
    if !node.is_map() {
        return Err(format!("`{step}` is looked up in a value that is not a mapping"));
    }
    if node.position(step).is_none() {
        let Some(create) = create else { return Ok(()) };
        if let Some(entries) = node.entries_mut() {
            entries.push(Entry::new(step, create.before(rest.first())));
        }
    }
    let Some(at) = node.position(step) else { return Ok(()) };
    if let Some(text) = node.get(step).filter(|_| !rest.is_empty()).and_then(Node::text) {
        return within(text, rest, create, found);
    }
    let Some(value) = node.entries_mut().and_then(|entries| entries.get_mut(at)) else { return Ok(()) };
    way.push(at);
    walk(&mut value.value, rest, create, way, found)?;
    way.pop();
    Ok(())
}

/// Matches a field path that continues below a null value. `node` is a new, empty node that replaces the null value
/// during the match. `visit` creates the missing fields in `node`. Like kustomize, this function does not write `node`
/// into the object. So a match has no path in the object: the function adds `None` to `found` for each match.
///
/// If `create` is `None`, no fields are created, and there is no match.
fn detached(
    mut node: Node,
    create: Option<Create>,
    found: &mut Vec<Option<Way>>,
    visit: impl FnOnce(&mut Node, &mut Way, &mut Vec<Option<Way>>) -> Result<(), String>,
) -> Result<(), String> {
    if create.is_none() {
        return Ok(());
    }
    let mut inner = Vec::new();
    visit(&mut node, &mut Vec::new(), &mut inner)?;
    found.extend(inner.into_iter().map(|_| None));
    Ok(())
}

/// Parses a string value as YAML, and matches the remaining path segments in the result. Adds `None` to `found` for
/// each match, because nodes of the parsed copy have no path in the object.
fn within(text: &str, rest: &[String], create: Option<Create>, found: &mut Vec<Option<Way>>) -> Result<(), String> {
    let parsed = parsed(text).ok_or_else(|| "the text is not YAML".to_owned())?;
    let Some(mut parsed) = parsed else { return Err("the text is empty".to_owned()) };
    let inner = find(&mut parsed, rest, create)?;
    found.extend(inner.into_iter().map(|_| None));
    Ok(())
}

/// Parses the YAML document in a text. Returns `None` if the text is not YAML, `Some(None)` if it contains no document.
pub(super) fn parsed(text: &str) -> Option<Option<Node>> {
    yaml::node(text, 0, &Limits::default()).ok()
}

fn element(
    node: &mut Node,
    index: usize,
    rest: &[String],
    create: Option<Create>,
    way: &mut Way,
    found: &mut Vec<Option<Way>>,
) -> Result<(), String> {
    if node.is_null() && create.is_some() {
        return detached(Node::seq(Vec::new()), create, found, |node, way, found| {
            element(node, index, rest, create, way, found)
        });
    }
    let Some(items) = node.items_mut() else {
        return Err(format!("index {index} is looked up in a value that is not a sequence"));
    };
    if let Some(create) = create.filter(|_| items.len() == index) {
        items.push(create.before(rest.first()));
    }
    let count = items.len();
    let item =
        items.get_mut(index).ok_or_else(|| format!("index {index} specified but only {count} elements found"))?;
    way.push(index);
    walk(item, rest, create, way, found)?;
    way.pop();
    Ok(())
}

/// Selects list elements with a step such as `[name=web]`, in which `web` is a regular expression. Then matches the
/// remaining path steps in these elements. If the key is empty, as in `[=web]`, the expression is compared with the
/// elements themselves. If no node is found and `create` is set, adds an element for `step` to the list.
fn selected(
    node: &mut Node,
    step: &str,
    rest: &[String],
    create: Option<Create>,
    way: &mut Way,
    found: &mut Vec<Option<Way>>,
) -> Result<(), String> {
    if node.is_null() {
        return detached(Node::seq(Vec::new()), create, found, |node, way, found| {
            selected(node, step, rest, create, way, found)
        });
    }
    let selector = step.trim_start_matches('[').trim_end_matches(']');
    let (key, pattern) = selector.split_once('=').ok_or_else(|| format!("`{step}` has no `=`"))?;
    let expression = regexp::compile(pattern).map_err(|error| error.to_string())?;
    let before = found.len();
    let fits = |node: &Node| expression.is_match(text_of(node).trim());
    each(node, way, |item, way| {
        if key.is_empty() {
            if fits(item) {
                found.push(Some(way.clone()));
            }
            return Ok(());
        }
        match item.get(key).is_some_and(fits) {
            true => walk(item, rest, create, way, found),
            false => Ok(()),
        }
    })?;
    if create.is_none() || found.len() > before {
        return Ok(());
    }
    let value = Node::scalar(pattern);
    let item = if key.is_empty() { value } else { Node::map(vec![Entry::new(key, value)]) };
    if !fits(item.get(key).unwrap_or(&item)) {
        return Err(format!("`{step}` does not match the element that it creates"));
    }
    node.items_mut().into_iter().for_each(|items| items.push(item.clone()));
    selected(node, step, rest, create, way, found)
}

fn each(
    node: &mut Node,
    way: &mut Way,
    mut visit: impl FnMut(&mut Node, &mut Way) -> Result<(), String>,
) -> Result<(), String> {
    if node.is_null() {
        return Ok(());
    }
    let Some(items) = node.items_mut() else {
        return Err("elements are looked up in a value that is not a sequence".to_owned());
    };
    for (at, item) in items.iter_mut().enumerate() {
        way.push(at);
        visit(item, way)?;
        way.pop();
    }
    Ok(())
}
