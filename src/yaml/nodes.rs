//! Builds nodes from the parser's events as kustomize does. Aliases and merge keys are expanded. Scalars stay text.
//!
//! Source: `ByteReader.Read` and `RNode.DeAnchor` of kyaml, `parser.node` of go-yaml v3.

mod mapping;

use std::borrow::Cow;
use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use granit_parser::{Event, ScalarStyle, Span, StructureStyle, Tag as Written};

use super::core;
use super::dialect::{self, As};
use super::end;
use super::error::{Problem, YamlError};
use super::node::{Kind, Node, Origin, Style, Tag};
use super::place::Place;
use super::reader::{Reader, content, weight};
use super::scalar;
use super::stream::Chunk;
use super::{Limits, quotes, strict};

/// Parses the first YAML document of `chunk` into a node. Returns `None` if `chunk` contains no document, for example
/// only comments. `source` is the number of the file, and is stored in each node. If `with_anchors` is true, each
/// mapping entry with a null key occurs twice in the node. The reason is that kyaml duplicates such entries when it
/// expands anchors.
pub(super) fn read(
    chunk: Chunk<'_>,
    source: u32,
    limits: &Limits,
    with_anchors: bool,
) -> Result<Option<Node>, YamlError> {
    if let Some((at, problem)) = dialect::mark(chunk.text) {
        return Err(YamlError { place: chunk.place(at), problem });
    }
    let (chunk, behind) = end::cut(chunk, false)?;
    let read = |chunk: Chunk<'_>, text: &str| {
        NodeReader { with_anchors, ..NodeReader::new(chunk, text, source, limits) }.document()
    };
    let node = quotes::with_any_indentation(chunk, |chunk| read_document(chunk, read))?;
    if let Some(behind) = behind {
        check_behind(behind, limits)?;
    }
    Ok(node)
}

/// Checks `behind`, the text after the document end marker `...`. go-yaml scans only the first tokens of this text.
/// Returns an error if go-yaml rejects these tokens. If it is unknown whether go-yaml rejects them, returns an error
/// only if our parser rejects the text.
fn check_behind(behind: Chunk<'_>, limits: &Limits) -> Result<(), YamlError> {
    let checked = end::check(behind);
    let is_open = checked.as_ref().is_err_and(|error| error.problem == Problem::BehindEnd);
    if is_open && NodeReader::new(behind, behind.text, 0, limits).skip_all().is_ok() {
        return Ok(());
    }
    checked
}

/// Parses a document by calling `read`. If our parser rejects the document, replaces tabs in the indentation with
/// spaces, and calls `read` again. go-yaml accepts such tabs inside brackets.
fn read_document(
    chunk: Chunk<'_>,
    read: impl Fn(Chunk<'_>, &str) -> Result<Option<Node>, YamlError>,
) -> Result<Option<Node>, YamlError> {
    let replaced = chunk.with_line_feeds()?;
    let chunk = chunk.replaced(replaced.as_deref());
    let refused = match read(chunk, chunk.text) {
        Err(error) if matches!(error.problem, Problem::Syntax(_) | Problem::Dialect(_)) => chunk.refused(error),
        read => return read,
    };
    match strict::with_spaces(chunk.text) {
        Some(text) => read(chunk, &text).map_err(|_| refused),
        None => Err(refused),
    }
}

/// A node with its size and height. Both are compared with limits when an alias copies the node.
#[derive(Clone)]
struct Built {
    node: Node,
    /// Number of values in the node, including the node itself. A long text counts as several values.
    size: usize,
    /// Depth of nested mappings and sequences in the node.
    height: usize,
}

struct NodeReader<'t, 'l> {
    events: Reader<'t, 'l>,
    source: u32,
    /// The value of each anchor, by the number that the parser gives to the anchor. `None` while the value is being
    /// parsed.
    anchors: HashMap<usize, Option<Built>>,
    /// Whether the text contains `# {`, which may begin a comment such as `# {"$ref": …}`. kyaml, the YAML library of
    /// kustomize, may use such a comment as the schema of a field.
    has_schemas: bool,
    /// Whether the document contains the word `List`, and so may be a Kubernetes object of kind `List`. kyaml, the YAML
    /// library of kustomize, keeps only the items of such an object. So it may ignore an invalid merge key (`<<`) at
    /// the top level of the object.
    may_be_list: bool,
    /// The current nesting depth of `<<` (merge key) values.
    merging: usize,
    /// Whether each mapping entry with a null key, such as `~: a`, occurs twice in the node. kyaml duplicates such
    /// entries when it expands the anchors in a manifest.
    with_anchors: bool,
    /// The end of the event that the parser returned last, as a byte offset in the whole file.
    end: usize,
    /// The previous value of `token`: the position of the second-to-last event.
    last: usize,
    /// The position of the last event that the parser returned, as a byte offset in the document. If the event begins a
    /// mapping, this is the start of the event; otherwise, it is the end of the event.
    token: usize,
}

impl<'t, 'l> NodeReader<'t, 'l> {
    fn new(chunk: Chunk<'t>, text: &'t str, source: u32, limits: &'l Limits) -> Self {
        let events = Reader::new(chunk, text, limits, As::Manifest);
        let (has_schemas, may_be_list) = (chunk.text.contains("# {"), chunk.text.contains("List"));
        Self {
            events,
            source,
            anchors: HashMap::new(),
            has_schemas,
            may_be_list,
            merging: 0,
            with_anchors: false,
            end: 0,
            last: 0,
            token: 0,
        }
    }

    fn event(&mut self) -> Result<(Event<'t>, Span), YamlError> {
        let (event, span) = self.events.event()?;
        self.end = self.events.span(span).end;
        let bytes = span.byte_range().unwrap_or_default();
        // The event of a mapping may include the `?` before its first key, which must still be found.
        let token = if matches!(event, Event::MappingStart(..)) { bytes.start } else { bytes.end };
        self.last = mem::replace(&mut self.token, token);
        Ok((event, span))
    }

    /// Parses the rest of the text without building nodes, and returns its first error.
    fn skip_all(&mut self) -> Result<(), YamlError> {
        while !matches!(self.events.event()?.0, Event::StreamEnd) {}
        Ok(())
    }

    fn document(&mut self) -> Result<Option<Node>, YamlError> {
        loop {
            match self.event()? {
                (Event::StreamEnd | Event::DocumentEnd, _) => return Ok(None),
                (Event::StreamStart | Event::DocumentStart(..), _) => {}
                (event, span) => {
                    let Built { node, .. } = self.node(event, span, 0)?;
                    let is_text = node.text().is_some_and(|text| !text.is_empty());
                    let place = Place { end: self.end, ..self.events.span(span) };
                    self.events.behind(place, !is_text)?;
                    return Ok(Some(node));
                }
            }
        }
    }

    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Built, YamlError> {
        self.events.count(span, depth)?;
        self.events.tag(&event, span)?;
        let (anchor, built) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                (anchor, self.scalar(content(text, span), style, tag.as_deref(), span)?)
            }
            Event::SequenceStart(style, anchor, tag) => {
                self.open(anchor);
                (anchor, self.sequence(span, depth)?.styled(style, tag.as_deref()))
            }
            Event::MappingStart(style, anchor, tag) => {
                self.open(anchor);
                (anchor, self.mapping(span, depth)?.styled(style, tag.as_deref()))
            }
            Event::Alias(anchor) => return self.alias(anchor, span, depth),
            _ => return Err(self.events.error(span, Problem::Syntax("a value was expected here".to_owned()))),
        };
        if anchor > 0 {
            self.events.copied(built.size).map_err(|problem| self.events.error(span, problem))?;
            self.anchors.insert(anchor, Some(built.clone()));
        }
        Ok(built)
    }

    fn origin(&self, span: Span) -> Origin {
        Origin { source: self.source, line: self.events.span(span).line }
    }

    fn scalar(
        &self,
        text: Cow<'t, str>,
        style: ScalarStyle,
        tag: Option<&Written>,
        span: Span,
    ) -> Result<Built, YamlError> {
        let text = self.events.text(text, style, span)?;
        let size = 1 + weight(&text);
        let written = tag.filter(|tag| !scalar::is_bare_tag(tag));
        let style = style_of(style);
        let resolved = match written {
            Some(tag) => tag_of(tag),
            None if style.is_quoted() => Tag::Str,
            None => core::tag_of(&text),
        };
        let node = Node {
            tag: resolved,
            tagged: written.is_some(),
            style,
            made: false,
            shared: 0,
            origin: self.origin(span),
            comment: self.comment(span),
            kind: Kind::Scalar(text.into()),
        };
        Ok(Built { node, size, height: 0 })
    }

    /// Returns the comment that follows a token on the same line, if the comment begins with `{`. kyaml, the YAML
    /// library of kustomize, may use such a comment as the schema of a field.
    fn comment(&self, span: Span) -> Option<Arc<String>> {
        let (_, behind) = self.events.around(span).filter(|_| self.has_schemas)?;
        let line = behind.lines().next()?.trim_start_matches([' ', ':', ',']);
        let comment = line.strip_prefix('#')?.trim();
        comment.starts_with('{').then(|| Arc::new(comment.to_owned()))
    }

    fn sequence(&mut self, start: Span, depth: usize) -> Result<Built, YamlError> {
        let (mut items, mut size, mut height) = (Vec::new(), 1, 0);
        loop {
            let (event, span) = self.event()?;
            if matches!(event, Event::SequenceEnd) {
                let node = Node::seq(items).at(self.origin(start));
                return Ok(Built { node, size, height: height + 1 });
            }
            let item = self.node(event, span, depth + 1)?;
            (size, height) = (size + item.size, height.max(item.height));
            items.push(item.node);
        }
    }

    /// Registers an anchor before its value is parsed, so that an alias of the anchor inside this value is reported as
    /// a recursion. `anchor` is the number that the parser gives to the anchor, or 0 if the value has no anchor.
    fn open(&mut self, anchor: usize) {
        if anchor > 0 {
            self.anchors.insert(anchor, None);
        }
    }

    fn alias(&mut self, anchor: usize, span: Span, depth: usize) -> Result<Built, YamlError> {
        let Some(Some(built)) = self.anchors.get(&anchor).cloned() else {
            return Err(self.events.error(span, Problem::Recursion));
        };
        self.events.copied(built.size).map_err(|problem| self.events.error(span, problem))?;
        self.events.reach(depth + built.height, span)?;
        Ok(built)
    }
}

impl Built {
    fn styled(mut self, style: StructureStyle, tag: Option<&Written>) -> Self {
        if style == StructureStyle::Flow {
            self.node.style = Style::Flow;
        }
        if let Some(tag) = tag.filter(|tag| !scalar::is_bare_tag(tag)).map(tag_of) {
            (self.node.tagged, self.node.tag) = (tag != self.node.tag, tag);
        }
        self
    }
}

fn style_of(style: ScalarStyle) -> Style {
    match style {
        ScalarStyle::Plain => Style::Plain,
        ScalarStyle::SingleQuoted => Style::SingleQuoted,
        ScalarStyle::DoubleQuoted => Style::DoubleQuoted,
        ScalarStyle::Literal => Style::Literal,
        ScalarStyle::Folded => Style::Folded,
    }
}

fn tag_of(tag: &Written) -> Tag {
    match tag.suffix_in_namespace(scalar::NAMESPACE).as_deref() {
        Some("null") => Tag::Null,
        Some("bool") => Tag::Bool,
        Some("int") => Tag::Int,
        Some("float") => Tag::Float,
        Some("str") => Tag::Str,
        Some("timestamp") => Tag::Timestamp,
        Some("binary") => Tag::Binary,
        Some("merge") => Tag::Merge,
        Some("map") => Tag::Map,
        Some("seq") => Tag::Seq,
        _ => Tag::Other,
    }
}
