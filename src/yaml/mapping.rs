//! Parses mappings: their keys, merge keys, and duplicate keys.

use std::cmp::Ordering;
use std::mem;

use granit_parser::{Event, ScalarStyle, Span, Tag};
use serde_json::{Map, Value};

use super::dialect::{self, As};
use super::error::{Problem, YamlError};
use super::place::{Entry, Kids, Place, Spot};
use super::reader::{Node, Reader, content, weight};
use super::scalar::{self, Scalar};

/// Compares entries by key, the order of entries in [`Kids::Map`].
pub(super) fn by_key(a: &Entry, b: &Entry) -> Ordering {
    a.key.cmp(&b.key)
}

/// An entry with its value.
struct Pair {
    entry: Entry,
    value: Value,
}

/// The entries of a mapping read so far.
#[derive(Default)]
struct Pairs {
    own: Vec<Pair>,
    /// Merged entries; the mapping's own entries override them.
    merged: Vec<Pair>,
    size: usize,
    height: usize,
    end: usize,
    /// Whether it has a key `<<` that merges.
    merges: bool,
    /// Whether it has a key `<<`.
    has_merge: bool,
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
                let (node, repeated) = assemble(pairs, place, self.keeps_text());
                self.keys.repeated |= repeated;
                return Ok(node);
            }
            self.count(span, depth)?;
            match self.key(event, span)? {
                Some((key, odd)) => self.entry(&mut pairs, span, (key, odd), depth + 1)?,
                None => self.merge(&mut pairs, span, depth + 1)?,
            }
        }
    }

    /// Adds an entry of the mapping itself. kyaml removes the first `<<` after merging, even if it is quoted.
    fn entry(
        &mut self,
        pairs: &mut Pairs,
        key_span: Span,
        (key, odd): (Box<str>, bool),
        depth: usize,
    ) -> Result<(), YamlError> {
        let is_lost = self.keeps_text() && &*key == scalar::MERGE && !mem::replace(&mut pairs.has_merge, true);
        let (event, span) = self.event()?;
        let node = if is_lost { self.within_merge(event, span, depth)? } else { self.node(event, span, depth)? };
        let key_place = self.span(key_span);
        pairs.reach(node.height, key_place.end.max(node.spot.place.end));
        if !is_lost {
            pairs.size += weight(&key) + node.size;
            self.keys.odd |= odd;
            let entry = Entry { key, key_place, spot: node.spot, merged: false, odd };
            pairs.own.push(Pair { entry, value: node.value });
        }
        Ok(())
    }

    /// Parses a key. Returns it as a string, and whether go-yaml v3 treats it as another type; `None` for the merge
    /// key.
    fn key(&mut self, event: Event<'t>, span: Span) -> Result<Option<(Box<str>, bool)>, YamlError> {
        self.tag(&event, span)?;
        let mut odd = Ok(false);
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

    /// Returns the reason why go-yaml may reject a key. In flow style a key must be on one line, unless `?` precedes
    /// it.
    pub(super) fn other_key(&self, text: &str, span: Span) -> Option<Problem> {
        if self.what == As::Manifest && text.len() > dialect::MAX_KEY_LENGTH {
            return Some(Problem::Dialect(dialect::LONG.to_owned()));
        }
        let (before, after) = self.around(span).filter(|_| self.strict.flow > 0 && self.what != As::Object)?;
        let colon = after.trim_start();
        let gap = after.strip_suffix(colon).filter(|_| colon.starts_with(':'))?;
        let word = before.split_whitespace().next_back().unwrap_or_default();
        let has_property = word.contains(['!', '&']) && before.trim_end_matches(' ').ends_with('\n');
        if span.start.line() == span.end.line() && !gap.contains('\n') && !has_property {
            return None;
        }
        let is_explicit = has_property || before.trim_end().ends_with('?');
        let problem = if is_explicit { Problem::Dialect } else { Problem::Syntax };
        Some(problem(dialect::KEY.to_owned()))
    }

    /// Returns whether go-yaml v3 reads the key of a manifest as another type than a string.
    fn is_odd(&self, text: &str, plain: bool, tag: Option<&Tag>) -> Result<bool, Problem> {
        match tag {
            _ if !self.keeps_text() => Ok(false),
            Some(tag) if !scalar::is_bare_tag(tag) => Ok(!scalar::is_string_tag(tag)),
            _ if !plain => Ok(false),
            _ => scalar::is_text(text).map(|is_text| !is_text).ok_or(Problem::Key("a time")),
        }
    }

    /// Merges the mappings under `<<`. As in go-yaml v2, their entries override earlier ones; as in kyaml, they
    /// override none.
    fn merge(&mut self, pairs: &mut Pairs, key: Span, depth: usize) -> Result<(), YamlError> {
        pairs.has_merge = true;
        if mem::replace(&mut pairs.merges, true) && self.keeps_text() {
            return Err(self.merge_error(key, Problem::MergedTwice));
        }
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
        // Of a list, the first mapping wins, so it is merged last.
        for node in nodes.into_iter().rev() {
            pairs.height = pairs.height.max(node.height.saturating_sub(1));
            let into = if self.keeps_text() { &mut pairs.merged } else { &mut pairs.own };
            into.extend(entries(node));
        }
        Ok(())
    }

    fn merged(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Node, YamlError> {
        if !matches!(event, Event::MappingStart(..) | Event::Alias(_)) {
            return Err(self.merge_error(span, Problem::Merge));
        }
        let node = self.within_merge(event, span, depth)?;
        if node.value.is_object() { Ok(node) } else { Err(self.merge_error(span, Problem::Merge)) }
    }

    /// Parses the value of a key `<<`.
    fn within_merge(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Node, YamlError> {
        self.merging += 1;
        let node = self.node(event, span, depth);
        self.merging -= 1;
        node
    }

    fn merge_error(&self, span: Span, problem: Problem) -> YamlError {
        let is_certain = self.merging == 0 || !self.keeps_text();
        self.error(span, if is_certain { problem } else { Problem::WithinMerged })
    }
}

/// Builds a mapping from its entries. Of duplicate keys the last one is used; with `first`, the first own one, as in a
/// node of kyaml. Also returns whether there are duplicates.
fn assemble(pairs: Pairs, place: Place, first: bool) -> (Node, bool) {
    let Pairs { own, merged: mut pairs, size, height, .. } = pairs;
    pairs.extend(own);
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
    let spot = Spot { place, kids: Kids::Map(entries) };
    (Node { value: Value::Object(members), spot, size, height: height + 1 }, repeated)
}

/// Converts a mapping to entries that are merged into another one.
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

/// Converts the value of an alias to a key.
fn value_key(value: Value) -> Result<String, Problem> {
    match value {
        Value::Null => Err(Problem::Key("null")),
        Value::Array(_) => Err(Problem::Key("a list")),
        Value::Object(_) => Err(Problem::Key("a mapping")),
        Value::String(text) => Ok(text),
        other => Ok(other.to_string()),
    }
}
