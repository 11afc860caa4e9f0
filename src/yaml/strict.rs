//! Detects texts that go-yaml rejects although YAML 1.2 and our parser accept them. kubectl rejects these texts, so
//! they are reported.

use granit_parser::{Event, ScalarStyle, Span, StructureStyle};

use super::dialect::{self, As};

const TAB: &str = "a tab cannot indent here, or follow `-`; use spaces";
const QUESTION: &str = "a plain scalar within brackets cannot have a `?`; put it in quotes";
const COLON: &str = "a plain scalar within brackets cannot begin with `:`; put it in quotes";
const ESCAPE: &str = "YAML 1.1 has no such escape";
const NAME: &str = "the name of an anchor can have only letters, digits, `-` and `_`";

/// A construct that go-yaml rejects, or may reject.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fault {
    /// The byte offset of the text that go-yaml rejects or may reject, such as a tab in the indentation.
    pub(super) at: usize,
    /// The message for the user.
    pub(super) what: &'static str,
    /// Whether go-yaml may accept the text. If `false`, go-yaml certainly rejects it.
    pub(super) is_open: bool,
}

impl Fault {
    fn sure(at: usize, what: &'static str) -> Self {
        Self { at, what, is_open: false }
    }

    fn open(at: usize, what: &'static str) -> Self {
        Self { at, what, is_open: true }
    }
}

/// A checker that detects constructs that go-yaml rejects. It checks the events of our parser, and the text between the
/// tokens.
pub(super) struct Strict<'t> {
    text: &'t str,
    tabs: bool,
    what: As,
    /// Number of flow collections (`[…]` or `{…}`) that are still open.
    pub(super) flow: usize,
    /// The start columns of the block mappings and block lists that are still open. The innermost one is last.
    columns: Vec<usize>,
    /// The byte offset in the text at which the last token ends.
    end: usize,
    /// The width of the indentation after a plain or block scalar, in columns. go-yaml rejects a tab in the first
    /// `margin` columns of the next line. A tab after these columns is allowed, because the scalar may continue on that
    /// line. `None` if the last token is not such a scalar.
    margin: Option<usize>,
}

impl<'t> Strict<'t> {
    pub(super) fn new(text: &'t str, what: As) -> Self {
        Self { text, tabs: text.contains('\t'), what, flow: 0, columns: Vec::new(), end: 0, margin: None }
    }

    pub(super) fn see(&mut self, event: &Event<'_>, span: &Span) -> Result<(), Fault> {
        let bytes = span.byte_range().unwrap_or_default();
        let token = !bytes.is_empty() && !matches!(event, Event::Anchor(..) | Event::DocumentStart(..));
        if self.tabs && (token || matches!(event, Event::DocumentEnd | Event::StreamEnd)) {
            self.gap(bytes.start)?;
        }
        match event {
            Event::MappingStart(style, ..) | Event::SequenceStart(style, ..) => self.open(*style, event, span),
            Event::MappingEnd | Event::SequenceEnd => self.close(),
            Event::Anchor(_, name) => {
                name_is_plain(name, bytes.start)?;
                self.name_ends(bytes.end)?;
            }
            Event::Alias(_) => {
                name_is_plain(span.slice(self.text).unwrap_or_default().trim_start_matches('*'), bytes.start)?;
                self.name_ends(bytes.end)?;
            }
            Event::Scalar(text, style, ..) if token => self.scalar(text, *style, span, bytes.start)?,
            _ => {}
        }
        if token {
            self.end = bytes.end;
            self.margin = None;
        }
        if let Event::Scalar(_, style, ..) = event
            && token
        {
            self.leave(*style, span, bytes.start);
        }
        Ok(())
    }

    /// Checks the character at the byte offset `end`, where our parser ends the name of an anchor or alias. Returns an
    /// error if go-yaml may read this character as a part of the name.
    fn name_ends(&self, end: usize) -> Result<(), Fault> {
        let next = self.text.get(end..).unwrap_or_default().chars().next();
        let ends = next.is_none_or(|next| next.is_whitespace() || matches!(next, ',' | ']' | '}'));
        if ends || self.what == As::Object { Ok(()) } else { Err(Fault::open(end, NAME)) }
    }

    fn open(&mut self, style: StructureStyle, event: &Event<'_>, span: &Span) {
        match style {
            StructureStyle::Flow => self.flow += 1,
            StructureStyle::Block => self.columns.push(self.column(event, span)),
        }
    }

    /// Returns the column at which a block mapping or block list begins. For most of them, this is the column that the
    /// YAML parser reports. For a list with the same indentation as its key, the parser reports the column after the
    /// first dash, so the column of the key is returned instead.
    fn column(&self, event: &Event<'_>, span: &Span) -> usize {
        let at = span.byte_range().unwrap_or_default().start;
        let dash = self.text.get(at..).unwrap_or_default().starts_with('-');
        match (event, self.columns.last()) {
            (Event::SequenceStart(..), Some(column)) if !dash => *column,
            _ => span.start.col(),
        }
    }

    /// Records the end of the innermost open mapping or list. While a flow collection (`[…]` or `{…}`) is open, this is
    /// always a flow collection, because flow collections cannot contain block collections.
    fn close(&mut self) {
        match self.flow {
            0 => drop(self.columns.pop()),
            _ => self.flow -= 1,
        }
    }

    fn scalar(&self, text: &str, style: ScalarStyle, span: &Span, at: usize) -> Result<(), Fault> {
        let end = span.byte_range().unwrap_or_default().end;
        match style {
            // go-yaml v3 may read the `?` as a key indicator.
            ScalarStyle::Plain if self.flow > 0 && text.starts_with('?') => Err(Fault::open(at, QUESTION)),
            ScalarStyle::Plain if self.flow > 0 && text.contains('?') => Err(Fault::sure(at, QUESTION)),
            ScalarStyle::Plain if self.flow > 0 && text.starts_with(':') => Err(Fault::sure(at, COLON)),
            ScalarStyle::Plain if self.flow > 0 && self.what != As::Object && dialect::has_colon(self.text, end) => {
                Err(Fault::open(end, dialect::COLON))
            }
            ScalarStyle::Plain => self.continuation(span, at),
            ScalarStyle::DoubleQuoted => escapes(span.slice(self.text).unwrap_or_default(), at),
            ScalarStyle::Literal | ScalarStyle::Folded if self.indents_with_tab(at) => Err(Fault::sure(at, TAB)),
            _ => Ok(()),
        }
    }

    /// Returns an error if a plain scalar has several lines, and a line after the first is indented with a tab. `span`
    /// is the range of the scalar in the text. `at` is the byte offset at which the scalar starts.
    fn continuation(&self, span: &Span, at: usize) -> Result<(), Fault> {
        let lines = span.slice(self.text).unwrap_or_default().split_inclusive('\n');
        let mut from = at;
        for line in lines {
            if let Some(column) = leading_tab(line).filter(|column| from > at && *column < self.margin()) {
                return Err(Fault::sure(from + column, TAB));
            }
            from += line.len();
        }
        Ok(())
    }

    /// Returns the smallest column at which the next line of a plain scalar may begin.
    fn margin(&self) -> usize {
        self.columns.last().map_or(0, |column| column + 1)
    }

    /// Sets the field `margin` after a plain or block scalar: the number of columns of the next line that go-yaml
    /// treats as indentation. go-yaml rejects tabs in these columns. For a block scalar, also sets the field `end` to
    /// the end of its text, without trailing whitespace. `at` is the byte offset at which the scalar starts.
    fn leave(&mut self, style: ScalarStyle, span: &Span, at: usize) {
        match style {
            ScalarStyle::Plain => self.margin = Some(self.margin()),
            ScalarStyle::Literal | ScalarStyle::Folded => {
                self.end = at + span.slice(self.text).unwrap_or_default().trim_end().len();
                self.margin = Some(span.start.col());
            }
            _ => {}
        }
    }

    /// Returns whether the first line of a block scalar is indented with a tab, and the scalar has no indentation
    /// indicator, such as `2` in `|2`. go-yaml rejects such a scalar. `at` is the byte offset of the scalar's content.
    fn indents_with_tab(&self, at: usize) -> bool {
        if !self.text.get(at..).unwrap_or_default().starts_with('\t') {
            return false;
        }
        let before = self.text.get(self.end..at).unwrap_or_default();
        let mut lines = before.lines().map(|line| line.split(" #").next().unwrap_or_default().trim_end());
        let header = lines.find(|line| line.contains(['|', '>'])).unwrap_or_default();
        let indicators = header.rsplit(['|', '>']).next().unwrap_or_default();
        !indicators.contains(|indicator: char| indicator.is_ascii_digit())
    }

    /// Returns an error if a tab between the last token and the byte offset `to` counts as indentation.
    fn gap(&self, to: usize) -> Result<(), Fault> {
        let gap = self.text.get(self.end..to).unwrap_or_default();
        let mut at = self.end;
        let mut margin = self.margin;
        for line in gap.split_inclusive('\n') {
            let begins = at == 0 || self.text.as_bytes().get(at - 1) == Some(&b'\n');
            if self.flow == 0 || margin.is_some() {
                indentation(line, begins, margin).map_err(|column| Fault::sure(at + column, TAB))?;
            }
            // After a comment or an indicator, no scalar continues.
            margin = margin.filter(|_| line.trim().is_empty());
            at += line.len();
        }
        Ok(())
    }
}

/// Returns an error if `line` has a tab in its indentation, or directly after the YAML indicators `-` and `?`. The
/// error is the byte offset of the tab in `line`. If `begins` is false, `line` is the rest of a line and has no
/// indentation. If `margin` is set, only the first `margin` bytes of `line` count as indentation.
fn indentation(line: &str, begins: bool, margin: Option<usize>) -> Result<(), usize> {
    let outside = |column: &usize| begins && margin.is_none_or(|margin| *column < margin);
    if let Some(column) = leading_tab(line).filter(outside) {
        return Err(column);
    }
    let content = line.trim_start_matches(' ');
    let after = content.trim_start_matches(['-', '?', ' ']);
    if after.len() < content.len() && after.starts_with('\t') && !content.starts_with("---") {
        return Err(line.len() - after.len());
    }
    Ok(())
}

/// Returns the column of the first tab in a line, if only spaces precede this tab.
fn leading_tab(line: &str) -> Option<usize> {
    let content = line.trim_start_matches(' ');
    content.starts_with('\t').then_some(line.len() - content.len())
}

/// Returns the text with spaces instead of the tabs in indentations. `None` if the text has no such tabs, or if one of
/// the tabs may be in the text of a block scalar.
pub(super) fn with_spaces(text: &str) -> Option<String> {
    if !text.contains("\n\t") && !text.contains(" \t") || text.contains(['|', '>']) {
        return None;
    }
    let mut spaced = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let content = line.trim_start_matches([' ', '\t']);
        spaced.extend(std::iter::repeat_n(' ', line.len() - content.len()));
        spaced.push_str(content);
    }
    Some(spaced)
}

fn name_is_plain(name: &str, at: usize) -> Result<(), Fault> {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if plain { Ok(()) } else { Err(Fault::open(at, NAME)) }
}

/// Returns an error if quoted text contains the escape `\/` or surrogates. JSON supports them, but YAML 1.1 does not.
fn escapes(quoted: &str, at: usize) -> Result<(), Fault> {
    let mut rest = quoted;
    while let Some(next) = rest.find('\\') {
        rest = &rest[next + 1..];
        let surrogate = rest.strip_prefix(['u']).is_some_and(|hex| {
            hex.starts_with(['d', 'D']) && hex.get(1..2).is_some_and(|second| "89abcdefABCDEF".contains(second))
        });
        if surrogate || rest.starts_with('/') {
            return Err(Fault::sure(at + quoted.len() - rest.len() - 1, ESCAPE));
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    Ok(())
}
