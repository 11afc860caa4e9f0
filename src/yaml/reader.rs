//! From the parser's events to a document: anchors, aliases, merge keys, and the places of all.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;

use granit_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput, Tag, options};
use serde_json::Value;

use super::error::{Problem, YamlError};
use super::place::{Entry, Kids, Place, Spot};
use super::scalar::{self, Scalar};
use super::stream::Chunk;
use super::strict::Strict;
use super::{Document, Limits};

/// Reads the first document of a text as `yaml.Unmarshal` of go-yaml v2 does: what comes after
/// it is not looked at, and there is no document if its value is null.
pub(super) fn read(chunk: Chunk<'_>, limits: &Limits) -> Result<Option<Document>, YamlError> {
    let mut reader = Reader::new(chunk, limits);
    loop {
        match reader.event()? {
            (Event::StreamEnd | Event::DocumentEnd, _) => return Ok(None),
            (Event::StreamStart | Event::DocumentStart(..), _) => {}
            (event, span) => {
                let Node { value, spot, .. } = reader.node(event, span, 0)?;
                reader.event()?;
                return Ok((!value.is_null()).then_some(Document { value, spot }));
            }
        }
    }
}

/// The order of a mapping's entries in [`Kids::Map`].
pub(super) fn by_key(a: &Entry, b: &Entry) -> Ordering {
    a.key.cmp(&b.key)
}

/// A value that has been read, with what it takes to use it again.
#[derive(Clone)]
struct Node {
    value: Value,
    spot: Spot,
    /// How many values it has, itself included.
    size: usize,
    /// How many mappings and lists are within one another in it.
    height: usize,
}

struct Pair {
    entry: Entry,
    value: Value,
}

struct Reader<'t, 'l> {
    parser: Parser<'t, StrInput<'t>>,
    chunk: Chunk<'t>,
    strict: Strict<'t>,
    limits: &'l Limits,
    nodes: usize,
    aliased: usize,
    /// `None` while the value of the anchor is being read.
    anchors: HashMap<usize, Option<Node>>,
    /// Whether there can be an alias at all; else nothing is kept for it.
    aliases: bool,
}

impl<'t, 'l> Reader<'t, 'l> {
    fn new(chunk: Chunk<'t>, limits: &'l Limits) -> Self {
        let options = options! {
            emit_comments: false,
            emit_anchor_events: true,
            // one more than ours, so that ours is the one that is told
            flow_nesting_limit: limits.depth + 1,
            block_nesting_limit: limits.depth + 1,
        };
        Self {
            parser: Parser::new_from_str_with_options(chunk.text, options),
            chunk,
            strict: Strict::new(chunk.text),
            limits,
            nodes: 0,
            aliased: 0,
            anchors: HashMap::new(),
            aliases: chunk.text.contains('*'),
        }
    }

    fn event(&mut self) -> Result<(Event<'t>, Span), YamlError> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => {
                self.strict.see(&event, &span).map_err(|(at, fault)| self.fault(at, fault))?;
                if matches!(event, Event::Anchor(..)) { self.event() } else { Ok((event, span)) }
            }
            None => Ok((Event::StreamEnd, Span::default())),
            Some(Err(error)) => {
                let place = self.place(*error.marker(), *error.marker());
                Err(YamlError { place, problem: Problem::Syntax(error.info()) })
            }
        }
    }

    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Node, YamlError> {
        self.count(span, depth)?;
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let place = self.scalar_place(span, style);
                let value = scalar::resolve(content(text, span), style == ScalarStyle::Plain, tag.as_deref())
                    .and_then(Scalar::into_value)
                    .map_err(|problem| YamlError { place, problem })?;
                let node = Node { value, spot: Spot::leaf(place), size: 1, height: 0 };
                self.anchored(anchor, node, place)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open(anchor);
                let node = self.sequence(span, depth)?;
                let place = node.spot.place;
                self.anchored(anchor, node, place)
            }
            Event::MappingStart(_, anchor, _) => {
                self.open(anchor);
                let node = self.mapping(span, depth)?;
                let place = node.spot.place;
                self.anchored(anchor, node, place)
            }
            Event::Alias(anchor) => self.alias(anchor, span, depth),
            _ => Err(self.error(span, Problem::Syntax("a value was expected here".to_owned()))),
        }
    }

    fn sequence(&mut self, start: Span, depth: usize) -> Result<Node, YamlError> {
        let (mut values, mut spots) = (Vec::new(), Vec::new());
        let (mut size, mut height) = (1, 0);
        let mut place = self.span(start);
        loop {
            let (event, span) = self.event()?;
            if matches!(event, Event::SequenceEnd) {
                place.end = self.end(place.end, span);
                let spot = Spot { place, kids: Kids::List(spots) };
                return Ok(Node { value: Value::Array(values), spot, size, height: height + 1 });
            }
            let node = self.node(event, span, depth + 1)?;
            place.end = place.end.max(node.spot.place.end);
            (size, height) = (size + node.size, height.max(node.height));
            values.push(node.value);
            spots.push(node.spot);
        }
    }

    fn mapping(&mut self, start: Span, depth: usize) -> Result<Node, YamlError> {
        let mut pairs = Vec::new();
        let (mut size, mut height) = (1, 0);
        let mut place = self.span(start);
        loop {
            let (event, span) = self.event()?;
            if matches!(event, Event::MappingEnd) {
                place.end = self.end(place.end, span);
                return Ok(assemble(pairs, place, size, height + 1));
            }
            self.count(span, depth)?;
            let key_place = self.span(span);
            let Some(key) = self.key(event, span)? else {
                let (height_of, end) = self.merge(&mut pairs, depth + 1)?;
                (height, place.end) = (height.max(height_of), place.end.max(end));
                continue;
            };
            let (event, span) = self.event()?;
            let Node { value, spot, size: size_of, height: height_of } = self.node(event, span, depth + 1)?;
            place.end = place.end.max(key_place.end).max(spot.place.end);
            (size, height) = (size + size_of, height.max(height_of));
            pairs.push(Pair { entry: Entry { key, key_place, spot, merged: false }, value });
        }
    }

    /// The key as a string; `None` for the merge key.
    fn key(&mut self, event: Event<'t>, span: Span) -> Result<Option<Box<str>>, YamlError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar_key(content(text, span), style, anchor, tag.as_deref(), span)
            }
            Event::Alias(anchor) => {
                let key = self.alias(anchor, span, 0).map(|node| value_key(node.value))?;
                key.map(|key| Some(key.into())).map_err(|problem| self.error(span, problem))
            }
            Event::SequenceStart(..) => Err(self.error(span, Problem::Key("a list"))),
            _ => Err(self.error(span, Problem::Key("a mapping"))),
        }
    }

    fn scalar_key(
        &mut self,
        text: Cow<'t, str>,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        span: Span,
    ) -> Result<Option<Box<str>>, YamlError> {
        let plain = style == ScalarStyle::Plain;
        if scalar::is_merge(&text, plain, tag) {
            return Ok(None);
        }
        let place = self.span(span);
        let failed = |problem| YamlError { place, problem };
        let resolved = scalar::resolve(text, plain, tag).map_err(failed)?;
        if anchor > 0 {
            let value = resolved.clone().into_value().map_err(failed)?;
            self.anchored(anchor, Node { value, spot: Spot::leaf(place), size: 1, height: 0 }, place)?;
        }
        resolved.into_key().map(|key| Some(key.into())).map_err(failed)
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

    /// Marks an anchor whose value is not complete yet.
    fn open(&mut self, anchor: usize) {
        if anchor > 0 {
            self.anchors.insert(anchor, None);
        }
    }

    fn anchored(&mut self, anchor: usize, node: Node, place: Place) -> Result<Node, YamlError> {
        if anchor > 0 && self.aliases {
            self.copied(node.size).map_err(|problem| YamlError { place, problem })?;
            self.anchors.insert(anchor, Some(node.clone()));
        }
        Ok(node)
    }

    fn alias(&mut self, anchor: usize, span: Span, depth: usize) -> Result<Node, YamlError> {
        let place = self.span(span);
        let failed = |problem| YamlError { place, problem };
        let (size, height) = match self.anchors.get(&anchor) {
            Some(Some(node)) => (node.size, node.height),
            _ => return Err(failed(Problem::Recursion)),
        };
        self.copied(size).map_err(failed)?;
        if depth + height > self.limits.depth {
            return Err(failed(Problem::TooDeep(self.limits.depth)));
        }
        match self.anchors.get(&anchor) {
            Some(Some(Node { value, spot, .. })) => {
                Ok(Node { value: value.clone(), spot: spot.moved(place), size, height })
            }
            _ => Err(failed(Problem::Recursion)),
        }
    }

    fn copied(&mut self, size: usize) -> Result<(), Problem> {
        self.aliased += size;
        if self.aliased > self.limits.aliased { Err(Problem::TooManyAliased(self.limits.aliased)) } else { Ok(()) }
    }

    fn count(&mut self, span: Span, depth: usize) -> Result<(), YamlError> {
        self.nodes += 1;
        if self.nodes > self.limits.nodes {
            return Err(self.error(span, Problem::TooManyNodes(self.limits.nodes)));
        }
        if depth > self.limits.depth {
            return Err(self.error(span, Problem::TooDeep(self.limits.depth)));
        }
        Ok(())
    }

    fn fault(&self, at: usize, fault: &str) -> YamlError {
        YamlError { place: self.chunk.place(at), problem: Problem::Syntax(fault.to_owned()) }
    }

    fn error(&self, span: Span, problem: Problem) -> YamlError {
        YamlError { place: self.span(span), problem }
    }

    fn span(&self, span: Span) -> Place {
        self.place(span.start, span.end)
    }

    fn place(&self, start: Marker, end: Marker) -> Place {
        let byte = |marker: Marker| self.chunk.byte + marker.byte_offset().unwrap_or_default();
        Place {
            line: self.chunk.lines + start.line() as u32,
            column: start.col() as u32 + 1,
            start: byte(start),
            end: byte(end),
        }
    }

    /// The place of a scalar; a block scalar ends with its last character that is seen.
    fn scalar_place(&self, span: Span, style: ScalarStyle) -> Place {
        let mut place = self.span(span);
        if matches!(style, ScalarStyle::Literal | ScalarStyle::Folded) {
            let text = span.slice(self.chunk.text).unwrap_or_default();
            place.end = place.start + text.trim_end().len();
        }
        place
    }

    /// The end of a mapping or list: its bracket, or the end of the last value in it.
    fn end(&self, last: usize, span: Span) -> usize {
        if span.is_empty() { last } else { self.span(span).end }
    }
}

/// The text of a scalar; the parser writes `~` for one that is not there.
fn content(text: Cow<'_, str>, span: Span) -> Cow<'_, str> {
    if span.is_empty() && text == "~" { Cow::Borrowed("") } else { text }
}

/// A mapping of `pairs`: the last of equal keys counts.
fn assemble(mut pairs: Vec<Pair>, place: Place, size: usize, height: usize) -> Node {
    pairs.sort_by(|a, b| by_key(&a.entry, &b.entry));
    let size = size + pairs.iter().filter(|pair| pair.entry.merged).count();
    let mut entries = Vec::with_capacity(pairs.len());
    let members = pairs.into_iter().map(|Pair { entry, value }| {
        let key = String::from(&*entry.key);
        entries.push(entry);
        (key, value)
    });
    let value = Value::Object(members.collect());
    Node { value, spot: Spot { place, kids: Kids::Map(entries) }, size, height }
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
