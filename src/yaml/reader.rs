//! Builds a document from the parser's events. Handles anchors and aliases, and records the positions of all values.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;

use granit_parser::{ErrorKind, Event, Marker, Parser, ScalarStyle, Span, StrInput, Tag, options};
use serde_json::Value;

use super::block;
use super::breaks;
use super::dialect::{self, As};
use super::end;
use super::error::{Problem, YamlError};
use super::place::{Kids, Place, Spot};
use super::scalar::{self, Scalar};
use super::stream::Chunk;
use super::strict::{self, Fault, Strict};
use super::{Document, Limits};

/// Length of copied text that counts as one additional value, in bytes. The parser limits how many values the aliases
/// of a document copy. A long text counts as several values, because its copies need more memory.
const TEXT_OF_A_VALUE: usize = 128;

/// Parses the first document of a text, and ignores the text after it, as `yaml.Unmarshal` of go-yaml v2 does. `what`
/// is the type of file that contains the text. Returns `None` if the document is null or missing.
///
/// go-yaml accepts tabs as indentation inside brackets and quotes, but our parser does not. If parsing fails, replaces
/// these tabs with spaces and parses the text again. [`Strict`] still checks the text with the original tabs.
pub(super) fn read(chunk: Chunk<'_>, limits: &Limits, what: As) -> Result<Option<Document>, YamlError> {
    if let Some((at, problem)) = dialect::mark(chunk.text).filter(|_| what != As::Object) {
        return Err(YamlError { place: chunk.place(at), problem });
    }
    if let Some((at, problem)) = dialect::directive(chunk.text).filter(|_| what == As::Kustomization) {
        return Err(YamlError { place: chunk.place(at), problem });
    }
    // kubectl sometimes keeps the `---` between documents.
    let (chunk, _) = end::cut(chunk, chunk.lines > 0)?;
    let replaced = if what == As::Object { None } else { chunk.with_line_feeds()? };
    let chunk = chunk.replaced(replaced.as_deref());
    let refused = match Reader::new(chunk, chunk.text, limits, what).document() {
        Err(error) if matches!(error.problem, Problem::Syntax(_) | Problem::Dialect(_)) => chunk.refused(error),
        read => return read,
    };
    match strict::with_spaces(chunk.text) {
        Some(text) => Reader::new(chunk, &text, limits, what).document().map_err(|_| refused),
        None => Err(refused),
    }
}

/// A parsed value, with the positions of the values in it. Size and nesting depth are stored too, so that limits can be
/// checked before an alias copies the value.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) spot: Spot,
    /// Cost of copying the value. This is the number of values in it, including the value itself. A long text counts as
    /// several values.
    pub(super) size: usize,
    /// Depth of nested mappings and lists in the value.
    pub(super) height: usize,
}

/// A reader that builds a document from the parser's events, in one pass.
pub(super) struct Reader<'t, 'l> {
    parser: Parser<'t, StrInput<'t>>,
    chunk: Chunk<'t>,
    pub(super) strict: Strict<'t>,
    limits: &'l Limits,
    pub(super) what: As,
    nodes: usize,
    aliased: usize,
    pub(super) has_duplicates: bool,
    /// Whether the text has tags with unusual characters. Our parser and go-yaml may end such a tag at different
    /// characters. Computed when the first tag occurs.
    odd_tags: OnceCell<bool>,
    /// The values of anchors. `None` while the value of the anchor is being parsed.
    anchors: HashMap<usize, Option<Node>>,
    /// Whether the text may contain aliases. If `false`, the reader does not store the values of anchors.
    aliases: bool,
    /// Whether the original text contained byte order marks. The parser reads a copy of the text in which
    /// `breaks::SUBSTITUTE` replaces them.
    has_marks: bool,
}

impl<'t, 'l> Reader<'t, 'l> {
    /// Creates a reader that parses `text` and records the position of each value in the file. `chunk` contains one
    /// YAML document and its position in the file. `text` is the text of `chunk`, or a copy in which spaces replace
    /// tabs. `what` is the type of the file.
    pub(super) fn new(chunk: Chunk<'t>, text: &'t str, limits: &'l Limits, what: As) -> Self {
        let options = options! {
            emit_comments: false,
            emit_anchor_events: true,
            // The parser's limit is higher by one, so that our own error is reported.
            flow_nesting_limit: limits.depth + 1,
            block_nesting_limit: limits.depth + 1,
        };
        Self {
            parser: Parser::new_from_str_with_options(text, options),
            chunk,
            strict: Strict::new(chunk.text, what),
            limits,
            what,
            nodes: 0,
            aliased: 0,
            has_duplicates: false,
            odd_tags: OnceCell::new(),
            anchors: HashMap::new(),
            aliases: chunk.text.contains('*'),
            has_marks: chunk.original.is_some_and(|original| original.contains(breaks::MARK)),
        }
    }

    fn document(&mut self) -> Result<Option<Document>, YamlError> {
        loop {
            match self.event()? {
                (Event::StreamEnd | Event::DocumentEnd, _) => return Ok(None),
                (Event::StreamStart | Event::DocumentStart(..), _) => {}
                (event, span) => {
                    let Node { value, spot, .. } = self.node(event, span, 0)?;
                    let is_read = self.what != As::Object && value.as_str().is_none_or(str::is_empty);
                    self.behind(spot.place, is_read)?;
                    let Self { aliased, has_duplicates, .. } = *self;
                    return Ok((!value.is_null()).then_some(Document { value, aliased, spot, has_duplicates }));
                }
            }
        }
    }

    /// Returns an error if the text after the value of a document is invalid. `place` is the position of the value.
    ///
    /// `is_read` is true if kustomize may stop reading after the value, and thus miss a syntax error after it. A syntax
    /// error is then returned as [`Problem::Dialect`], which means that kustomize may accept the document.
    pub(super) fn behind(&mut self, place: Place, is_read: bool) -> Result<(), YamlError> {
        let [begin, end] = [place.start, place.end].map(|at| at - self.chunk.byte);
        if self.what != As::Object && dialect::has_more(self.chunk.text, begin, end) {
            let rest = &self.chunk.text[end..];
            return match end::begins_block(rest) || self.is_valid(rest) {
                true => Ok(()),
                false => Err(YamlError { place, problem: Problem::Dialect(dialect::MORE.to_owned()) }),
            };
        }
        self.event().map(drop).map_err(|error| match error.problem {
            Problem::Syntax(text) if is_read => YamlError { problem: Problem::Dialect(text), ..error },
            _ => error,
        })
    }

    /// Returns whether the whole `text` parses without an error. `text` is the rest of the input after the value of a
    /// document. go-yaml scans only the first tokens of `text`, so it accepts every `text` for which the result is
    /// true.
    fn is_valid(&self, text: &str) -> bool {
        let mut reader = Reader::new(Chunk { text, ..self.chunk }, text, self.limits, self.what);
        loop {
            match reader.event() {
                Ok((Event::StreamEnd, _)) => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
    }

    pub(super) fn event(&mut self) -> Result<(Event<'t>, Span), YamlError> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => {
                let event = if self.has_marks { breaks::with_marks(event) } else { event };
                self.strict.see(&event, &span).map_err(|fault| self.fault(&fault))?;
                if matches!(event, Event::Anchor(..)) { self.event() } else { Ok((event, span)) }
            }
            None => Ok((Event::StreamEnd, Span::default())),
            Some(Err(error)) => {
                let place = self.place(*error.marker(), *error.marker());
                let problem = match error.kind() {
                    ErrorKind::RecursionLimitExceeded => Problem::TooDeep(self.limits.depth),
                    ErrorKind::MissingDocumentEndBeforeDirective => Problem::Directive,
                    _ if self.what == As::Object => Problem::Syntax(error.info()),
                    kind => dialect::problem(kind, error.info(), self.chunk.text, place.start - self.chunk.byte),
                };
                Err(YamlError { place, problem })
            }
        }
    }

    pub(super) fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Node, YamlError> {
        self.count(span, depth)?;
        self.tag(&event, span)?;
        let (anchor, node) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                (anchor, self.scalar(content(text, span), style, tag.as_deref(), span)?)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open(anchor);
                (anchor, self.sequence(span, depth)?)
            }
            Event::MappingStart(_, anchor, _) => {
                self.open(anchor);
                (anchor, self.mapping(span, depth)?)
            }
            Event::Alias(anchor) => return self.alias(anchor, span, depth),
            _ => return Err(self.error(span, Problem::Syntax("a value was expected here".to_owned()))),
        };
        self.anchored(anchor, node)
    }

    pub(super) fn scalar(
        &self,
        text: Cow<'t, str>,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: Span,
    ) -> Result<Node, YamlError> {
        let place = self.scalar_place(span, style);
        // kubectl adds a line break after the last line, as our parser does. So the text needs no correction.
        let text = if self.what == As::Object { text } else { self.text(text, style, span)? };
        let size = 1 + weight(&text);
        let plain = style == ScalarStyle::Plain;
        let value = scalar::resolve(text, plain, tag)
            .and_then(Scalar::into_value)
            .map_err(|problem| YamlError { place, problem })?;
        Ok(Node { value, spot: Spot::leaf(place), size, height: 0 })
    }

    fn sequence(&mut self, start: Span, depth: usize) -> Result<Node, YamlError> {
        let (mut values, mut spots) = (Vec::new(), Vec::new());
        let (mut size, mut height) = (1, 0);
        let mut place = self.sequence_place(start);
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

    /// Registers an anchor before its value is parsed, so that an alias inside the value is reported as an error.
    fn open(&mut self, anchor: usize) {
        if anchor > 0 {
            self.anchors.insert(anchor, None);
        }
    }

    pub(super) fn anchored(&mut self, anchor: usize, node: Node) -> Result<Node, YamlError> {
        if anchor > 0 && self.aliases {
            let place = node.spot.place;
            self.copied(node.size).map_err(|problem| YamlError { place, problem })?;
            self.anchors.insert(anchor, Some(node.clone()));
        }
        Ok(node)
    }

    pub(super) fn alias(&mut self, anchor: usize, span: Span, depth: usize) -> Result<Node, YamlError> {
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

    pub(super) fn copied(&mut self, size: usize) -> Result<(), Problem> {
        self.aliased += size;
        if self.aliased > self.limits.aliased { Err(Problem::TooManyAliased(self.limits.aliased)) } else { Ok(()) }
    }

    pub(super) fn count(&mut self, span: Span, depth: usize) -> Result<(), YamlError> {
        self.nodes += 1;
        if self.nodes > self.limits.nodes {
            return Err(self.error(span, Problem::TooManyNodes(self.limits.nodes)));
        }
        self.reach(depth, span)
    }

    /// Returns an error if the nesting depth `depth` exceeds the limit. `span` is the position of the value, for the
    /// error.
    pub(super) fn reach(&self, depth: usize, span: Span) -> Result<(), YamlError> {
        if depth > self.limits.depth {
            return Err(self.error(span, Problem::TooDeep(self.limits.depth)));
        }
        Ok(())
    }

    fn fault(&self, fault: &Fault) -> YamlError {
        let is_open = fault.is_open && self.what != As::Object;
        let problem = if is_open { Problem::Dialect } else { Problem::Syntax };
        YamlError { place: self.chunk.place(fault.at), problem: problem(fault.what.to_owned()) }
    }

    pub(super) fn error(&self, span: Span, problem: Problem) -> YamlError {
        YamlError { place: self.span(span), problem }
    }

    pub(super) fn span(&self, span: Span) -> Place {
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

    /// Returns where a scalar starts and ends in the text. For a block scalar, the end excludes trailing white space.
    fn scalar_place(&self, span: Span, style: ScalarStyle) -> Place {
        let mut place = self.span(span);
        if matches!(style, ScalarStyle::Literal | ScalarStyle::Folded) {
            let text = span.slice(self.chunk.text).unwrap_or_default();
            place.end = place.start + text.trim_end().len();
        }
        place
    }

    /// Returns the text of a scalar as go-yaml reads it.
    ///
    /// # Errors
    ///
    /// If the scalar contains line breaks whose effect in go-yaml is unknown.
    pub(super) fn text<'s>(
        &self,
        text: Cow<'s, str>,
        style: ScalarStyle,
        span: Span,
    ) -> Result<Cow<'s, str>, YamlError> {
        let written = self.chunk.original.zip(span.byte_range());
        let Some((original, mut bytes)) = written else { return Ok(self.unbroken(text, style, span)) };
        if matches!(style, ScalarStyle::Literal | ScalarStyle::Folded) {
            // Line breaks before the first and after the last line belong to the scalar.
            let (before, behind) = (&self.chunk.text[..bytes.start], &self.chunk.text[bytes.end..]);
            bytes = before.trim_end().len()..original.len() - behind.trim_start().len();
        }
        let bytes = breaks::part_of(original, &bytes);
        match style {
            _ if !breaks::has_other(original, &bytes) => Ok(self.unbroken(text, style, span)),
            ScalarStyle::Plain if breaks::are_replaced(original, self.chunk.text, &bytes) => {
                Ok(breaks::folded(&original[bytes]).into())
            }
            ScalarStyle::DoubleQuoted | ScalarStyle::SingleQuoted => {
                let is_double = style == ScalarStyle::DoubleQuoted;
                let read = if is_double { breaks::double_quoted } else { breaks::single_quoted };
                read(&original[bytes]).map(Cow::Owned).ok_or_else(|| self.error(span, breaks::problem()))
            }
            ScalarStyle::Literal | ScalarStyle::Folded => {
                let text = block::text(original, bytes, span.indent);
                text.map(Cow::Owned).ok_or_else(|| self.error(span, breaks::problem()))
            }
            _ => Err(self.error(span, breaks::problem())),
        }
    }

    /// Returns whether the scalar at `span` contains a character such as U+2028. go-yaml breaks the line at such a
    /// character, but our parser does not.
    pub(super) fn breaks_line(&self, span: Span) -> bool {
        let written = self.chunk.original.zip(span.byte_range());
        written.is_some_and(|(original, bytes)| breaks::has_other(original, &breaks::part_of(original, &bytes)))
    }

    /// Returns the text of a block scalar. If the document does not end with a line break, our parser adds one, and
    /// this function removes it.
    fn unbroken<'s>(&self, text: Cow<'s, str>, style: ScalarStyle, span: Span) -> Cow<'s, str> {
        let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        let ends = || span.byte_range().is_some_and(|bytes| bytes.end >= self.chunk.text.len());
        match text {
            text if !is_block || self.chunk.text.ends_with('\n') || !text.ends_with('\n') || !ends() => text,
            Cow::Borrowed(text) => Cow::Borrowed(&text[..text.len() - 1]),
            Cow::Owned(mut text) => {
                text.pop();
                Cow::Owned(text)
            }
        }
    }

    /// Returns the position of a list: the position of its first dash, or of its bracket. `span` is the position that
    /// the parser reports. The parser reports a position after the dash if the list has the same indentation as its
    /// key. This function corrects such a position.
    fn sequence_place(&self, span: Span) -> Place {
        let mut place = self.span(span);
        let before = self.chunk.text.get(..place.start - self.chunk.byte).unwrap_or_default();
        let item = before.trim_end_matches(' ');
        if item.ends_with('-') && span.is_empty() && !self.chunk.text[before.len()..].starts_with('-') {
            let back = before.len() - item.len() + 1;
            (place.start, place.column) = (place.start - back, place.column - back as u32);
        }
        place
    }

    /// Returns the text before and after a span.
    pub(super) fn around(&self, span: Span) -> Option<(&str, &str)> {
        let bytes = span.byte_range()?;
        Some((self.chunk.text.get(..bytes.start)?, self.chunk.text.get(bytes.end..)?))
    }

    /// Checks the tag of a value. Returns an error if go-yaml may interpret the tag differently than our parser, so
    /// that the type of the value is unknown. Checks only files that kustomize reads, not objects for kubectl.
    pub(super) fn tag(&self, event: &Event<'_>, span: Span) -> Result<(), YamlError> {
        let has_odd = || *self.odd_tags.get_or_init(|| dialect::has_odd_tag(self.chunk.text));
        let problem = dialect::tag(event, has_odd).filter(|_| self.what != As::Object);
        problem.map_or(Ok(()), |problem| Err(self.error(span, problem)))
    }

    /// Returns the byte offset at which a mapping or list ends. For a flow collection, this is the end of the closing
    /// bracket. For a block collection, it is `last`, the end of its last value.
    pub(super) fn end(&self, last: usize, span: Span) -> usize {
        if span.is_empty() { last } else { self.span(span).end }
    }
}

/// Returns the additional cost of copying a long scalar: 1 for each full 128 bytes of `text`. The limit on aliases in
/// [`Limits`] includes this cost, so it also limits how much text is copied.
pub(super) fn weight(text: &str) -> usize {
    text.len() / TEXT_OF_A_VALUE
}

/// Returns the text of a scalar. For a missing scalar, the parser returns `~`, and this function returns an empty text.
pub(super) fn content(text: Cow<'_, str>, span: Span) -> Cow<'_, str> {
    if span.is_empty() && text == "~" { Cow::Borrowed("") } else { text }
}
