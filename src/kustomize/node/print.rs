//! Converts nodes to the values that kustomize prints.
//!
//! kustomize writes a node as YAML, parses this text again, and writes the result as JSON. This module computes the
//! resulting value without these steps.
//!
//! Source: `RNode.MarshalJSON` of kyaml, `encoder.node` and `decoder.scalar` of go-yaml v3.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{Entry, Kind, Node, Origin, Style, Tag, folded};
use crate::kustomize::emit::value::Value;
use crate::yaml::core::{self, Resolved};

/// Maximum size of a mapping in which duplicate keys are found by comparing all pairs of keys. Larger mappings use a
/// hash set.
const SMALL: usize = 16;

/// The error for a node that kustomize cannot serialize.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unprintable {
    /// The position of the invalid value.
    pub origin: Origin,
    /// The JSON pointer of the invalid key or value. If the invalid key is itself a list or mapping, the pointer leads
    /// to the mapping that contains this key.
    pub pointer: String,
    /// The reason why kustomize cannot serialize the key or value.
    pub kind: UnprintableKind,
}

impl Unprintable {
    /// Prepends a key or index to the JSON pointer of the error.
    fn within(self, step: &str) -> Self {
        let step = step.replace('~', "~0").replace('/', "~1");
        Self { pointer: format!("/{step}{}", self.pointer), ..self }
    }
}

impl fmt::Display for Unprintable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pointer, kind, .. } = self;
        match kind {
            UnprintableKind::Key(_) => write!(f, "its key {pointer} is not a string"),
            UnprintableKind::CollectionKey(kind) if pointer.is_empty() => write!(f, "one of its keys is {kind}"),
            UnprintableKind::CollectionKey(kind) => write!(f, "a key of {pointer} is {kind}"),
            UnprintableKind::Duplicate(_) => write!(f, "duplicate key {pointer}"),
            kind => write!(f, "its value {pointer}: {kind}"),
        }
    }
}

/// The reason why kustomize cannot serialize a node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnprintableKind {
    /// A duplicate key in a mapping.
    #[error("mapping key {0:?} is defined more than once")]
    Duplicate(String),
    /// A key that is not a string, such as a number or a boolean.
    #[error("mapping key {0:?} is not a string")]
    Key(String),
    /// A key that is a mapping or sequence. The text is the type of the key, for error messages.
    #[error("{0} cannot be the key of a mapping")]
    CollectionKey(&'static str),
    /// A number that is infinite or NaN.
    #[error("{0} is not a finite number")]
    NotFinite(String),
    /// A scalar that does not match its tag.
    #[error("{text:?} is not of the type {tag}")]
    Tag {
        /// The tag of the scalar in its short form, such as `!!int`.
        tag: &'static str,
        /// The text of the scalar.
        text: String,
    },
    /// A control character that YAML does not allow.
    #[error("a control character cannot be printed")]
    Control,
}

/// Converts a node to the value that kustomize prints for it.
///
/// # Errors
///
/// If kustomize cannot serialize the node, for example because of a duplicate key, a nested key that is not a string,
/// or a number that is not finite.
pub fn printed(node: &Node) -> Result<Value<'_>, Unprintable> {
    printed_within(node, Within { flow: false, top: true })
}

/// Converts a nested YAML node, such as the value of a field, to the value that kustomize prints for it. Unlike
/// [`printed`], requires that the keys of the node itself are strings.
///
/// # Errors
///
/// If kustomize cannot serialize the node, for example because of a duplicate key, a key that is not a string, or a
/// number that is not finite.
pub fn printed_inner(node: &Node) -> Result<Value<'_>, Unprintable> {
    printed_within(node, Within { flow: false, top: false })
}

/// The properties of a node's position that affect how kustomize prints the node.
#[derive(Debug, Clone, Copy)]
struct Within {
    /// Whether the node is inside brackets or braces.
    flow: bool,
    /// Whether the node is the whole document. kustomize accepts keys that are not strings only in the top-level
    /// mapping of a document.
    top: bool,
}

fn printed_within<'n>(node: &'n Node, within: Within) -> Result<Value<'n>, Unprintable> {
    let inner = Within { flow: within.flow || node.style == Style::Flow, top: false };
    match &node.kind {
        // go-yaml writes an empty scalar inside brackets or braces with quotes, and with a tag if it had another type
        Kind::Scalar(text) if within.flow && text.is_empty() && !node.tagged && !has_printed_tag(node.tag) => {
            Ok(Value::Text("".into()))
        }
        Kind::Scalar(text) if node.style == Style::Folded && !within.flow => {
            Ok(folded::refolded(text).map_or_else(|| scalar(node, text), |text| Ok(Value::Text(text.into())))?)
        }
        Kind::Scalar(text) => scalar(node, text),
        Kind::Seq(items) => {
            let item = |(at, item): (usize, &'n Node)| {
                printed_within(item, inner).map_err(|error| error.within(&at.to_string()))
            };
            Ok(Value::List(items.iter().enumerate().map(item).collect::<Result<_, _>>()?))
        }
        Kind::Map(entries) => map(node, entries, inner, within.top),
    }
}

/// Returns whether go-yaml writes the tag before a scalar that has this tag and an empty text.
fn has_printed_tag(tag: Tag) -> bool {
    matches!(tag, Tag::Bool | Tag::Int | Tag::Float | Tag::Timestamp | Tag::Binary)
}

fn map<'n>(node: &Node, entries: &'n [Entry], inner: Within, is_top: bool) -> Result<Value<'n>, Unprintable> {
    let failed = |entry: &Entry, kind| {
        let origin = if entry.value.is_scalar() { entry.value.origin } else { node.origin };
        Unprintable { origin, pointer: String::new(), kind }.within(&entry.key)
    };
    if let Some(entry) = duplicate(entries) {
        return Err(failed(entry, UnprintableKind::Duplicate(entry.key.to_string())));
    }
    let mut members = Vec::with_capacity(entries.len());
    for entry in entries {
        if let Some(kind) = entry.collection_key() {
            let kind = UnprintableKind::CollectionKey(kind);
            return Err(Unprintable { origin: node.origin, pointer: String::new(), kind });
        }
        match key(entry, inner.flow) {
            Key::Null if is_top => continue,
            Key::Null | Key::Other if !is_top => {
                return Err(failed(entry, UnprintableKind::Key(entry.key.to_string())));
            }
            _ => {}
        }
        let value = printed_within(&entry.value, inner).map_err(|error| error.within(&entry.key))?;
        members.push((Cow::Borrowed(&*entry.key), value));
    }
    Ok(Value::Map(members))
}

/// The type of a mapping key in kustomize's output. kustomize writes each object as YAML with go-yaml, and parses this
/// YAML again. For example, the key `1` without quotes is then a number.
enum Key {
    String,
    /// A null key. kustomize ignores a null key at the top level of a document, and fails on a null key elsewhere.
    Null,
    Other,
}

/// Returns the type of a mapping key after kustomize has written the object as YAML and has parsed this YAML again. An
/// empty key becomes a string, because go-yaml writes it in quotes. Inside braces, go-yaml also writes a key with a
/// colon, such as `12:30`, in quotes.
fn key(entry: &Entry, is_in_flow: bool) -> Key {
    let tag = match entry.key_tag {
        Tag::Null | Tag::None if entry.key.is_empty() => Tag::Str,
        Tag::None if is_in_flow && entry.key.contains(':') => Tag::Str,
        Tag::None => core::tag_of(&entry.key),
        tag => tag,
    };
    match tag {
        Tag::Str | Tag::Merge => Key::String,
        Tag::Null => Key::Null,
        _ => Key::Other,
    }
}

fn duplicate(entries: &[Entry]) -> Option<&Entry> {
    if entries.len() <= SMALL {
        let mut keys = entries.iter().enumerate();
        return keys
            .find(|(at, entry)| entries[..*at].iter().any(|other| is_same_key(other, entry)))
            .map(|(_, entry)| entry);
    }
    let mut seen = HashSet::with_capacity(entries.len());
    entries.iter().find(|entry| entry.collection_key().is_none() && !seen.insert(&*entry.key))
}

fn is_same_key(a: &Entry, b: &Entry) -> bool {
    a.key == b.key && a.collection_key().is_none() && b.collection_key().is_none()
}

fn scalar<'n>(node: &Node, text: &'n str) -> Result<Value<'n>, Unprintable> {
    let failed = |kind| Unprintable { origin: node.origin, pointer: String::new(), kind };
    if text.contains(|c| matches!(c, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}')) {
        return Err(failed(UnprintableKind::Control));
    }
    if !node.tagged && node.tag == Tag::Str {
        return Ok(Value::Text(text.into()));
    }
    let resolved = core::resolve(text);
    let is_of_its_tag = matches!(node.tag, Tag::None | Tag::Merge) || resolved.tag() == node.tag;
    // go-yaml omits the tag that the text has without quotes, but keeps the quotes, so it parses the text as a string
    if is_of_its_tag && !node.tagged && (node.style.is_quoted() || text.contains('\n')) {
        return Ok(Value::Text(text.into()));
    }
    if is_of_its_tag && !(node.tagged && node.tag == Tag::Str) {
        return typed(resolved, text).ok_or_else(|| failed(UnprintableKind::NotFinite(text.to_owned())));
    }
    of_tag(node.tag, resolved, text).ok_or_else(|| failed(wrong_tag(node.tag, text)))
}

fn typed(resolved: Resolved, text: &str) -> Option<Value<'_>> {
    Some(match resolved {
        Resolved::Null => Value::Null,
        Resolved::Bool(flag) => Value::Bool(flag),
        Resolved::Int(int) => Value::Int(int),
        Resolved::Uint(int) => Value::Uint(int),
        Resolved::Float(float) if float.is_finite() => Value::Float(float),
        Resolved::Float(_) => return None,
        Resolved::Time(time) => Value::Text(time.into()),
        Resolved::Text => Value::Text(text.into()),
    })
}

/// Returns the value of a scalar whose tag differs from the type of its text, or whose tag is an explicit `!!str`.
/// `resolved` is the type and value of the text without the tag. For example, `!!float 1` is a float, although its text
/// is an integer. Returns `None` if kustomize cannot convert the text to the type of the tag, as in `!!int abc`.
fn of_tag<'n>(tag: Tag, resolved: Resolved, text: &'n str) -> Option<Value<'n>> {
    match (tag, resolved) {
        (Tag::Float, Resolved::Int(int)) => Some(Value::Float(int as f64)),
        (Tag::Binary, _) => {
            let bytes = STANDARD.decode(text.replace(['\r', '\n'], "")).ok()?;
            Some(Value::Text(String::from_utf8_lossy(&bytes).into_owned().into()))
        }
        (Tag::Str | Tag::Other | Tag::Map | Tag::Seq, _) => Some(Value::Text(text.into())),
        _ => None,
    }
}

fn wrong_tag(tag: Tag, text: &str) -> UnprintableKind {
    let tag = match tag {
        Tag::Null => "!!null",
        Tag::Bool => "!!bool",
        Tag::Int => "!!int",
        Tag::Float => "!!float",
        Tag::Timestamp => "!!timestamp",
        Tag::Binary => "!!binary",
        _ => "!!str",
    };
    UnprintableKind::Tag { tag, text: text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::{self, Limits};

    fn value(text: &str) -> Result<Value<'static>, UnprintableKind> {
        let node = yaml::node(text, 0, &Limits::default()).unwrap().unwrap();
        match printed(node.get("a").unwrap()).map_err(|error| error.kind)? {
            Value::Text(text) => Ok(Value::Text(Cow::Owned(text.into_owned()))),
            Value::Null => Ok(Value::Null),
            Value::Bool(flag) => Ok(Value::Bool(flag)),
            Value::Int(int) => Ok(Value::Int(int)),
            Value::Uint(int) => Ok(Value::Uint(int)),
            Value::Float(float) => Ok(Value::Float(float)),
            Value::List(_) | Value::Map(_) => panic!("not a scalar"),
        }
    }

    #[test]
    fn scalars_get_the_types_of_go_yaml_v3() {
        assert_eq!(value("a: yes"), Ok(Value::Text("yes".into())));
        assert_eq!(value("a: 0644"), Ok(Value::Int(420)));
        assert_eq!(value("a: !!str 123"), Ok(Value::Text("123".into())));
        assert_eq!(value("a: !!float 3"), Ok(Value::Float(3.0)));
        assert_eq!(value("a: '1'"), Ok(Value::Text("1".into())));
        assert_eq!(value("a: 2001-01-01"), Ok(Value::Text("2001-01-01T00:00:00Z".into())));
        assert_eq!(value("a: .inf"), Err(UnprintableKind::NotFinite(".inf".to_owned())));
        assert_eq!(value("a: !!binary aGk="), Ok(Value::Text("hi".into())));
    }

    #[test]
    fn empty_nulls_in_braces_become_empty_strings() {
        let print = |text: &str| {
            let node = yaml::node(text, 0, &Limits::default()).unwrap().unwrap();
            printed(&node).map(|value| format!("{value:?}")).unwrap()
        };
        assert_eq!(print("a: [b: ]"), r#"Map([("a", List([Map([("b", Text(""))])]))])"#);
        assert_eq!(print("a: {b: null}"), r#"Map([("a", Map([("b", Null)]))])"#);
        assert_eq!(print("a: {}\nb:"), r#"Map([("a", Map([])), ("b", Null)])"#);
    }

    #[test]
    fn a_changed_text_keeps_the_type() {
        let print = |tag, text: &str| {
            let node = Node::new(Kind::Scalar(text.into()), tag);
            printed(&node).map(|value| format!("{value:?}")).map_err(|error| error.kind)
        };
        assert_eq!(print(Tag::Int, "8080").unwrap(), "Int(8080)");
        assert_eq!(print(Tag::Str, "8080").unwrap(), "Text(\"8080\")");
        assert_eq!(print(Tag::Int, "x"), Err(UnprintableKind::Tag { tag: "!!int", text: "x".to_owned() }));
    }

    #[test]
    fn keys_are_distinct_strings() {
        let keys = |text: &str| {
            let node = yaml::node(text, 0, &Limits::default()).unwrap().unwrap();
            printed(&node).err().map(|error| error.kind)
        };
        assert_eq!(keys("{a: 1, a: 2}"), Some(UnprintableKind::Duplicate("a".to_owned())));
        assert_eq!(keys("{a: {1: 1}}"), Some(UnprintableKind::Key("1".to_owned())));
        assert_eq!(keys("{1: 1}"), None);
        assert_eq!(keys("{<<: {b: 1}, b: 2}"), None);
        let time = |style| {
            let entry = Entry::new("2001-01-01T00:00:00Z", Node::string("a"));
            let annotations = Node { style, ..Node::map(vec![entry]) };
            printed(&Node::map(vec![Entry::new("a", annotations)])).is_ok()
        };
        assert_eq!([Style::Flow, Style::Plain].map(time), [true, false]);
    }
}
