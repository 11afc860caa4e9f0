//! Parses YAML mappings, including their keys, merge keys and duplicate keys.

use std::cmp::Ordering;

use granit_parser::{Event, ScalarStyle, Span};
use serde_json::{Map, Value};

use super::dialect::{self, As};
use super::error::{Problem, YamlError};
use super::place::{Entry, Kids, Place, Spot};
use super::reader::{Node, Reader, content, weight};
use super::scalar::{self, Scalar};

/// Compares two mapping entries by their keys. [`Kids::Map`] stores its entries in this order.
pub(super) fn by_key(a: &Entry, b: &Entry) -> Ordering {
    a.key.cmp(&b.key)
}

/// A parsed entry of a mapping: its key, its value, and the positions of the key and the value in the text.
struct Pair {
    entry: Entry,
    value: Value,
}

/// The entries of a mapping that were parsed so far.
#[derive(Default)]
struct Pairs {
    entries: Vec<Pair>,
    size: usize,
    height: usize,
    end: usize,
}

impl Pairs {
    fn reach(&mut self, height: usize, end: usize) {
        (self.height, self.end) = (self.height.max(height), self.end.max(end));
    }
}

impl<'t> Reader<'t, '_> {
    pub(super) fn mapping(&mut self, start: Span, depth: usize) -> Result<Node, YamlError> {
        let mut place = self.span(start);
        let mut pairs = Pairs { size: 1, end: place.end, ..Pairs::default() };
        loop {
            let (event, span) = self.event()?;
            if matches!(event, Event::MappingEnd) {
                place.end = self.end(pairs.end, span);
                let (node, has_duplicates) = assemble(pairs, place);
                self.has_duplicates |= has_duplicates;
                return Ok(node);
            }
            self.count(span, depth)?;
            match self.key(event, span)? {
                Some(key) => self.entry(&mut pairs, span, key, depth + 1)?,
                None => self.merge(&mut pairs, depth + 1)?,
            }
        }
    }

    fn entry(&mut self, pairs: &mut Pairs, key_span: Span, key: Box<str>, depth: usize) -> Result<(), YamlError> {
        let (event, span) = self.event()?;
        let node = self.node(event, span, depth)?;
        let key_place = self.span(key_span);
        pairs.reach(node.height, key_place.end.max(node.spot.place.end));
        pairs.size += weight(&key) + node.size;
        let entry = Entry { key, key_place, spot: node.spot, merged: false };
        pairs.entries.push(Pair { entry, value: node.value });
        Ok(())
    }

    /// Parses a key, and converts it to a string; `None` for the merge key.
    fn key(&mut self, event: Event<'t>, span: Span) -> Result<Option<Box<str>>, YamlError> {
        self.tag(&event, span)?;
        let key = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let (text, plain) = (content(text, span), style == ScalarStyle::Plain);
                if let Some(problem) = self.other_key(&text, span) {
                    return Err(self.error(span, problem));
                }
                if scalar::is_merge(&text, plain, tag.as_deref()) {
                    return Ok(None);
                }
                if anchor > 0 {
                    let node = self.scalar(text.clone(), style, tag.as_deref(), span)?;
                    self.anchored(anchor, node)?;
                }
                scalar::resolve(text, plain, tag.as_deref()).and_then(Scalar::into_key)
            }
            Event::Alias(anchor) => {
                self.alias_key(span)?;
                value_key(self.alias(anchor, span, 0)?.value)
            }
            Event::SequenceStart(..) => Err(Problem::Key("a list")),
            _ => Err(Problem::Key("a mapping")),
        };
        key.map(|key| Some(key.into())).map_err(|problem| self.error(span, problem))
    }

    /// Checks an alias that is used as a mapping key, such as `*name : value`. The alias and its colon must be on the
    /// same line, unless `?` precedes the alias.
    ///
    /// # Errors
    ///
    /// If the alias and its colon are on different lines, and no `?` precedes the alias. go-yaml rejects such a text.
    pub(super) fn alias_key(&self, span: Span) -> Result<(), YamlError> {
        match self.other_key("", span) {
            Some(problem @ Problem::Syntax(_)) => Err(self.error(span, problem)),
            _ => Ok(()),
        }
    }

    /// Checks the mapping key at `span`. Returns a problem if go-yaml rejects or may reject the key; otherwise `None`.
    /// `text` is the text of the key. The checks depend on what the parser reads:
    ///
    /// - [`As::Kustomization`]: the key must be on one line, unless `?` precedes it. Within brackets, the key, its tag
    ///   and its colon must be on one line even after `?`.
    /// - [`As::Manifest`]: in addition, the key must not be longer than [`dialect::MAX_KEY_LENGTH`].
    /// - [`As::Object`]: keys are not checked.
    pub(super) fn other_key(&self, text: &str, span: Span) -> Option<Problem> {
        if self.what == As::Manifest && text.len() > dialect::MAX_KEY_LENGTH {
            return Some(Problem::Dialect(dialect::LONG.to_owned()));
        }
        let (before, after) = self.around(span).filter(|_| self.what != As::Object)?;
        let is_explicit = before.trim_end().ends_with('?');
        if self.breaks_line(span) && !is_explicit {
            return Some(Problem::BrokenKey);
        }
        // In block style, our parser itself rejects other keys of several lines.
        if self.strict.flow == 0 {
            return None;
        }
        let colon = after.trim_start();
        let gap = after.strip_suffix(colon).filter(|_| colon.starts_with(':'))?;
        let word = before.split_whitespace().next_back().unwrap_or_default();
        let has_property = word.contains(['!', '&']) && before.trim_end_matches(' ').ends_with('\n');
        if span.start.line() == span.end.line() && !gap.contains('\n') && !has_property {
            return None;
        }
        let problem = if has_property || is_explicit { Problem::Dialect } else { Problem::Syntax };
        Some(problem(dialect::KEY.to_owned()))
    }

    /// Merges the mappings under `<<`. As in go-yaml v2, the merged entries override entries before the `<<`.
    fn merge(&mut self, pairs: &mut Pairs, depth: usize) -> Result<(), YamlError> {
        let (event, span) = self.event()?;
        let mut nodes = Vec::new();
        if matches!(event, Event::SequenceStart(..)) {
            loop {
                let (event, span) = self.event()?;
                if matches!(event, Event::SequenceEnd) {
                    pairs.end = pairs.end.max(self.end(0, span));
                    break;
                }
                nodes.push(self.merged(event, span, depth)?);
            }
        } else {
            let node = self.merged(event, span, depth)?;
            pairs.end = pairs.end.max(node.spot.place.end);
            nodes.push(node);
        }
        // The first mapping of a list takes precedence, so it is merged last.
        for node in nodes.into_iter().rev() {
            pairs.height = pairs.height.max(node.height.saturating_sub(1));
            pairs.entries.extend(entries(node));
        }
        Ok(())
    }

    fn merged(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Node, YamlError> {
        if !matches!(event, Event::MappingStart(..) | Event::Alias(_)) {
            return Err(self.error(span, Problem::Merge));
        }
        let node = self.node(event, span, depth)?;
        if node.value.is_object() { Ok(node) } else { Err(self.error(span, Problem::Merge)) }
    }
}

/// Builds a mapping from its entries. If entries have the same key, the last one is used. Also returns whether there
/// are duplicate keys.
fn assemble(pairs: Pairs, place: Place) -> (Node, bool) {
    let Pairs { entries: mut pairs, size, height, .. } = pairs;
    pairs.sort_by(|a, b| by_key(&a.entry, &b.entry));
    let size = size + pairs.iter().filter(|pair| pair.entry.merged).count();
    let mut entries = Vec::with_capacity(pairs.len());
    let mut members = Map::new();
    for Pair { entry, value } in pairs {
        members.insert(String::from(&*entry.key), value);
        entries.push(entry);
    }
    let has_duplicates = members.len() < entries.len();
    let spot = Spot { place, kids: Kids::Map(entries) };
    (Node { value: Value::Object(members), spot, size, height: height + 1 }, has_duplicates)
}

/// Converts a mapping to the entries that `<<` merges into another mapping.
fn entries(node: Node) -> Vec<Pair> {
    let (Value::Object(mut members), Kids::Map(entries)) = (node.value, node.spot.kids) else { return Vec::new() };
    let mut pairs = Vec::with_capacity(entries.len());
    // Iterates backwards, because the last of equal keys has the value.
    for entry in entries.into_iter().rev() {
        if let Some(value) = members.remove(&*entry.key) {
            pairs.push(Pair { entry: Entry { merged: true, ..entry }, value });
        }
    }
    pairs
}

/// Returns the text of a mapping key that is an alias, such as `*name : value`. `value` is the value to which the alias
/// refers. Fails if `value` is null, a list or a mapping.
fn value_key(value: Value) -> Result<String, Problem> {
    match value {
        Value::Null => Err(Problem::Key("null")),
        Value::Array(_) => Err(Problem::Key("a list")),
        Value::Object(_) => Err(Problem::Key("a mapping")),
        Value::String(text) => Ok(text),
        other => Ok(other.to_string()),
    }
}
