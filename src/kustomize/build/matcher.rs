//! All nodes that a path leads to: `*` stands for all elements of a list, `[name=expression]` for those that match.
//!
//! Source: `PathMatcher` in `kyaml/yaml/match.go`.

use super::go_regex;
use crate::kustomize::emit;
use crate::kustomize::node::{Entry, Kind, Node, Style, Tag, printed};
use crate::yaml::{self, Limits, core};

/// A node that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// The indices of the entries and elements on the way to it.
    At(Vec<usize>),
    /// It is in the text of a scalar.
    InText,
}

/// Finds nodes. Missing ones are made if `leaf` is given, the last one of its kind.
///
/// # Errors
///
/// When a step does not fit what is there.
pub(super) fn find(node: &mut Node, steps: &[String], leaf: Option<&Node>) -> Result<Vec<Found>, String> {
    let mut search = Search { leaf, place: Vec::new(), found: Vec::new(), in_text: false };
    search.walk(node, steps)?;
    Ok(search.found)
}

/// The node at a place.
pub(super) fn at<'n>(node: &'n mut Node, place: &[usize]) -> Option<&'n mut Node> {
    place.iter().try_fold(node, |node, index| child(node, *index))
}

fn child(node: &mut Node, index: usize) -> Option<&mut Node> {
    if node.is_map() {
        node.entries_mut()?.get_mut(index).map(|entry| &mut entry.value)
    } else {
        node.items_mut()?.get_mut(index)
    }
}

struct Search<'l> {
    leaf: Option<&'l Node>,
    place: Vec<usize>,
    found: Vec<Found>,
    in_text: bool,
}

impl Search<'_> {
    fn walk(&mut self, node: &mut Node, steps: &[String]) -> Result<(), String> {
        let Some((step, rest)) = steps.split_first() else {
            self.take();
            return Ok(());
        };
        if let Ok(index) = step.parse() {
            self.index(node, index, rest)
        } else if step.starts_with('[') && step.ends_with(']') {
            self.elements(node, step, rest)
        } else if step == "*" {
            self.every(node, rest)
        } else {
            self.field(node, step, rest)
        }
    }

    fn take(&mut self) {
        self.found.push(if self.in_text { Found::InText } else { Found::At(self.place.clone()) });
    }

    fn enter(&mut self, node: &mut Node, index: usize, rest: &[String]) -> Result<(), String> {
        self.place.push(index);
        let walked = child(node, index).map_or(Ok(()), |node| self.walk(node, rest));
        self.place.pop();
        walked
    }

    fn field(&mut self, node: &mut Node, name: &str, rest: &[String]) -> Result<(), String> {
        if node.is_null() {
            return Ok(());
        }
        if !node.is_map() || name.is_empty() {
            return Err(format!("`{name}` is looked for in what is no mapping"));
        }
        let index = match (node.position(name), self.leaf) {
            (Some(index), _) => index,
            (None, None) => return Ok(()),
            (None, Some(leaf)) => push_entry(node, name, made(rest, leaf)),
        };
        let text = node.entries().get(index).and_then(|entry| entry.value.shared_text());
        match text {
            Some(text) if !rest.is_empty() => self.text(&text, rest),
            _ => self.enter(node, index, rest),
        }
    }

    /// Goes on in the text of a scalar.
    fn text(&mut self, text: &str, rest: &[String]) -> Result<(), String> {
        let mut document = document(text).ok_or("the text of a scalar is no YAML")?;
        let outer = std::mem::replace(&mut self.in_text, true);
        let walked = self.walk(&mut document, rest);
        self.in_text = outer;
        walked
    }

    fn index(&mut self, node: &mut Node, index: usize, rest: &[String]) -> Result<(), String> {
        let length = elements_of(node)?;
        if length == index
            && let Some(leaf) = self.leaf
            && let Some(items) = node.items_mut()
        {
            items.push(made(rest, leaf));
        }
        if node.items().len() <= index {
            return Err(format!("there is no element {index}, only {length}"));
        }
        self.enter(node, index, rest)
    }

    fn every(&mut self, node: &mut Node, rest: &[String]) -> Result<(), String> {
        (0..elements_of(node)?).try_for_each(|index| self.enter(node, index, rest))
    }

    /// Takes the elements that match; if there are none, one is made where that is wanted.
    fn elements(&mut self, node: &mut Node, step: &str, rest: &[String]) -> Result<(), String> {
        let inner = step.trim_start_matches('[').trim_end_matches(']');
        let (field, expression) = inner.split_once('=').ok_or_else(|| format!("`{step}` has no `=`"))?;
        let before = self.found.len();
        self.matching(node, field, expression, rest)?;
        if self.found.len() > before || self.leaf.is_none() {
            return Ok(());
        }
        let value = Node::scalar(expression);
        let element = if field.is_empty() { value } else { Node::map(vec![Entry::new(field, value)]) };
        node.items_mut().ok_or("elements are looked for in what is no list")?.push(element);
        self.matching(node, field, expression, rest)?;
        if self.found.len() > before { Ok(()) } else { Err(format!("`{step}` does not match itself")) }
    }

    fn matching(&mut self, node: &mut Node, field: &str, expression: &str, rest: &[String]) -> Result<(), String> {
        let expression =
            go_regex::compile(expression).map_err(|_| format!("`{expression}` is no regular expression"))?;
        for index in 0..elements_of(node)? {
            let Some(element) = node.items().get(index) else { continue };
            let compared = if field.is_empty() { Some(element) } else { element.get(field) };
            if !compared.is_some_and(|node| expression.is_match(&written(node))) {
                continue;
            }
            // the steps behind one that selects scalars are not looked at
            self.enter(node, index, if field.is_empty() { &[] } else { rest })?;
        }
        Ok(())
    }
}

fn elements_of(node: &Node) -> Result<usize, String> {
    if node.is_seq() || node.is_null() {
        return Ok(node.items().len());
    }
    Err("elements are looked for in what is no list".to_owned())
}

fn push_entry(node: &mut Node, name: &str, value: Node) -> usize {
    if let Some(entries) = node.entries_mut() {
        entries.push(Entry::new(name, value));
    }
    node.entries().len().saturating_sub(1)
}

/// A new node, of the kind that the steps behind it need.
fn made(rest: &[String], leaf: &Node) -> Node {
    match rest.first() {
        None => match leaf.kind {
            Kind::Scalar(_) => Node::scalar(""),
            Kind::Map(_) => Node::map(Vec::new()),
            Kind::Seq(_) => Node::seq(Vec::new()),
        },
        Some(next) if (next.starts_with('[') && next.ends_with(']')) || next.parse::<usize>().is_ok() => {
            Node::seq(Vec::new())
        }
        Some(_) => Node::map(Vec::new()),
    }
}

/// The document in a text. An empty one is no node at all.
pub(super) fn document(text: &str) -> Option<Node> {
    match yaml::node(text, 0, &Limits::default()) {
        Ok(Some(node)) => Some(node),
        Ok(None) if !text.trim().is_empty() => Some(Node::null()),
        _ => None,
    }
}

/// A node as go-yaml writes it: a scalar with its quotes.
fn written(node: &Node) -> String {
    let Some(text) = node.text() else {
        let mut out = String::new();
        let value = printed(node).ok();
        let is_written = value.is_some_and(|value| emit::document(&value, &mut out).is_ok());
        return if is_written { out.trim().to_owned() } else { String::new() };
    };
    let needs_quotes = node.tag == Tag::Str && core::tag_of(text) != Tag::Str;
    match node.style {
        Style::SingleQuoted => format!("'{}'", text.replace('\'', "''")),
        Style::DoubleQuoted => serde_json::Value::from(text).to_string(),
        Style::Plain if needs_quotes => serde_json::Value::from(text).to_string(),
        _ => text.trim().to_owned(),
    }
}
