//! Mappings: their keys, merge keys, and which of equal keys counts.

use std::cmp::Ordering;

use granit_parser::{Event, ScalarStyle, Span, Tag};
use serde_json::{Map, Value};

use super::error::{Problem, YamlError};
use super::place::{Entry, Kids, Place, Spot};
use super::reader::{Node, Reader, content, weight};
use super::scalar::{self, Scalar};

/// The order of a mapping's entries in [`Kids::Map`].
pub(super) fn by_key(a: &Entry, b: &Entry) -> Ordering {
    a.key.cmp(&b.key)
}

/// An entry with its value.
struct Pair {
    entry: Entry,
    value: Value,
}

impl<'t> Reader<'t, '_> {
    pub(super) fn mapping(&mut self, start: Span, depth: usize) -> Result<Node, YamlError> {
        let (mut pairs, mut merged) = (Vec::new(), Vec::new());
        let (mut size, mut height) = (1, 0);
        let mut place = self.span(start);
        loop {
            let (event, span) = self.event()?;
            if matches!(event, Event::MappingEnd) {
                place.end = self.end(place.end, span);
                merged.append(&mut pairs);
                let (node, repeated) = assemble(merged, place, size, height + 1, self.keeps_text());
                self.keys.repeated |= repeated;
                return Ok(node);
            }
            self.count(span, depth)?;
            let key_place = self.span(span);
            let Some((key, odd)) = self.key(event, span)? else {
                // in go-yaml v2 what is merged wins over what stands before it, in kyaml over nothing
                let into = if self.keeps_text() { &mut merged } else { &mut pairs };
                let (height_of, end) = self.merge(into, depth + 1)?;
                (height, place.end) = (height.max(height_of), place.end.max(end));
                continue;
            };
            let (event, span) = self.event()?;
            let Node { value, spot, size: size_of, height: height_of } = self.node(event, span, depth + 1)?;
            place.end = place.end.max(key_place.end).max(spot.place.end);
            (size, height) = (size + weight(&key) + size_of, height.max(height_of));
            self.keys.odd |= odd;
            pairs.push(Pair { entry: Entry { key, key_place, spot, merged: false, odd }, value });
        }
    }

    /// The key as a string, and whether go-yaml v3 takes it for something else; `None` for the merge key.
    fn key(&mut self, event: Event<'t>, span: Span) -> Result<Option<(Box<str>, bool)>, YamlError> {
        let mut odd = Ok(false);
        let key = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let (text, plain) = (content(text, span), style == ScalarStyle::Plain);
                if scalar::is_merge(&text, plain, tag.as_deref()) {
                    return Ok(None);
                }
                if anchor > 0 {
                    let node = self.scalar(text.clone(), style, tag.as_deref(), span)?;
                    self.anchored(anchor, node)?;
                }
                odd = self.is_odd(&text, plain, tag.as_deref());
                self.resolve(text, plain, tag.as_deref()).and_then(Scalar::into_key)
            }
            // whether its scalar was in quotes is forgotten
            Event::Alias(_) if self.keeps_text() => Err(Problem::Key("an alias")),
            Event::Alias(anchor) => value_key(self.alias(anchor, span, 0)?.value),
            Event::SequenceStart(..) => Err(Problem::Key("a list")),
            _ => Err(Problem::Key("a mapping")),
        };
        key.and_then(|key| Ok(Some((key.into(), odd?)))).map_err(|problem| self.error(span, problem))
    }

    /// Whether go-yaml v3 takes the key of a manifest for something else than a string.
    fn is_odd(&self, text: &str, plain: bool, tag: Option<&Tag>) -> Result<bool, Problem> {
        match tag {
            _ if !self.keeps_text() => Ok(false),
            None if !plain => Ok(false),
            None => scalar::is_text(text).map(|is_text| !is_text).ok_or(Problem::Key("a time")),
            Some(tag) => Ok(!scalar::is_string_tag(tag)),
        }
    }

    /// Adds the entries of what `<<` names to `pairs`, over those before it as go-yaml v2 does;
    /// gives its height and where it ends.
    fn merge(&mut self, pairs: &mut Vec<Pair>, depth: usize) -> Result<(usize, usize), YamlError> {
        let (event, span) = self.event()?;
        if !matches!(event, Event::SequenceStart(..)) {
            let node = self.merged(event, span, depth)?;
            let reached = (node.height.saturating_sub(1), node.spot.place.end);
            pairs.extend(entries(node));
            return Ok(reached);
        }
        let mut nodes = Vec::new();
        let (mut height, end) = loop {
            let (event, span) = self.event()?;
            if matches!(event, Event::SequenceEnd) {
                break (0, self.end(0, span));
            }
            nodes.push(self.merged(event, span, depth)?);
        };
        // the first of the list counts, so it is written last
        for node in nodes.into_iter().rev() {
            height = height.max(node.height.saturating_sub(1));
            pairs.extend(entries(node));
        }
        Ok((height, end))
    }

    fn merged(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Node, YamlError> {
        if !matches!(event, Event::MappingStart(..) | Event::Alias(_)) {
            return Err(self.error(span, Problem::Merge));
        }
        let node = self.node(event, span, depth)?;
        if node.value.is_object() { Ok(node) } else { Err(self.error(span, Problem::Merge)) }
    }
}

/// A mapping of `pairs`: the last of equal keys counts, or the first of the mapping's own ones as in a node of kyaml. And
/// whether there are any.
fn assemble(mut pairs: Vec<Pair>, place: Place, size: usize, height: usize, first: bool) -> (Node, bool) {
    pairs.sort_by(|a, b| by_key(&a.entry, &b.entry));
    let size = size + pairs.iter().filter(|pair| pair.entry.merged).count();
    let mut entries = Vec::with_capacity(pairs.len());
    let mut members = Map::new();
    for Pair { entry, value } in pairs {
        let settled = first && entries.last().is_some_and(|last: &Entry| last.key == entry.key && !last.merged);
        if !settled {
            members.insert(String::from(&*entry.key), value);
        }
        entries.push(entry);
    }
    let repeated = members.len() < entries.len();
    let value = Value::Object(members);
    (Node { value, spot: Spot { place, kids: Kids::Map(entries) }, size, height }, repeated)
}

/// The entries of a mapping that is merged into another.
fn entries(node: Node) -> Vec<Pair> {
    let (Value::Object(mut members), Kids::Map(entries)) = (node.value, node.spot.kids) else { return Vec::new() };
    let mut pairs = Vec::with_capacity(entries.len());
    // backwards, as the last of equal keys has the value
    for entry in entries.into_iter().rev() {
        if let Some(value) = members.remove(&*entry.key) {
            pairs.push(Pair { entry: Entry { merged: true, ..entry }, value });
        }
    }
    pairs
}

/// The key that an alias stands for.
fn value_key(value: Value) -> Result<String, Problem> {
    match value {
        Value::Null => Err(Problem::Key("null")),
        Value::Array(_) => Err(Problem::Key("a list")),
        Value::Object(_) => Err(Problem::Key("a mapping")),
        Value::String(text) => Ok(text),
        other => Ok(other.to_string()),
    }
}
