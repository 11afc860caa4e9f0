//! What go-yaml refuses although YAML 1.2, and so our parser, lets it pass. Who writes such a
//! text hears it from kubectl; so they shall hear it from us.

use granit_parser::{Event, ScalarStyle, Span, StructureStyle};

const TAB: &str = "a tab cannot indent here, or follow `-`; use spaces";
const QUESTION: &str = "a plain scalar within brackets cannot have a `?`; put it in quotes";
const COLON: &str = "a plain scalar within brackets cannot begin with `:`; put it in quotes";
const ESCAPE: &str = "YAML 1.1 has no such escape";
const NAME: &str = "the name of an anchor has only letters, digits, `-` and `_`";

/// A fault: the byte it is at, and what it is.
pub(super) type Fault = (usize, &'static str);

/// Looks at every event, in their order, and at the text between them.
pub(super) struct Strict<'t> {
    text: &'t str,
    tabs: bool,
    /// How many flow collections are open.
    flow: usize,
    /// The columns of the block collections that are open.
    columns: Vec<usize>,
    /// Where the last token ended.
    end: usize,
    /// After a scalar that may go on in the next line: the column from which a tab is part of it.
    margin: Option<usize>,
}

impl<'t> Strict<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, tabs: text.contains('\t'), flow: 0, columns: Vec::new(), end: 0, margin: None }
    }

    pub(super) fn see(&mut self, event: &Event<'_>, span: &Span) -> Result<(), Fault> {
        let bytes = span.byte_range().unwrap_or_default();
        let token = !bytes.is_empty() && !matches!(event, Event::Anchor(..) | Event::DocumentStart(..));
        if self.tabs && (token || matches!(event, Event::DocumentEnd | Event::StreamEnd)) {
            self.gap(bytes.start)?;
        }
        match event {
            Event::MappingStart(style, ..) | Event::SequenceStart(style, ..) => self.open(*style, span),
            Event::MappingEnd | Event::SequenceEnd => self.close(),
            Event::Anchor(_, name) => name_is_plain(name, bytes.start)?,
            Event::Alias(_) => {
                name_is_plain(span.slice(self.text).unwrap_or_default().trim_start_matches('*'), bytes.start)?
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

    fn open(&mut self, style: StructureStyle, span: &Span) {
        match style {
            StructureStyle::Flow => self.flow += 1,
            StructureStyle::Block => self.columns.push(span.start.col()),
        }
    }

    /// Within a flow collection there are no block collections, so the innermost is at its end.
    fn close(&mut self) {
        match self.flow {
            0 => drop(self.columns.pop()),
            _ => self.flow -= 1,
        }
    }

    fn scalar(&self, text: &str, style: ScalarStyle, span: &Span, at: usize) -> Result<(), Fault> {
        match style {
            ScalarStyle::Plain if self.flow > 0 && text.contains('?') => Err((at, QUESTION)),
            ScalarStyle::Plain if self.flow > 0 && text.starts_with(':') => Err((at, COLON)),
            ScalarStyle::DoubleQuoted => escapes(span.slice(self.text).unwrap_or_default(), at),
            ScalarStyle::Literal | ScalarStyle::Folded if self.indents_with_tab(at) => Err((at, TAB)),
            _ => Ok(()),
        }
    }

    /// Remembers what a scalar makes of the white space after it.
    fn leave(&mut self, style: ScalarStyle, span: &Span, at: usize) {
        match style {
            ScalarStyle::Plain => self.margin = Some(self.columns.last().map_or(0, |column| column + 1)),
            ScalarStyle::Literal | ScalarStyle::Folded => {
                self.end = at + span.slice(self.text).unwrap_or_default().trim_end().len();
                self.margin = Some(span.start.col());
            }
            _ => {}
        }
    }

    /// Whether a block scalar, which must find its indentation from its first line, finds a tab.
    fn indents_with_tab(&self, at: usize) -> bool {
        if !self.text.get(at..).unwrap_or_default().starts_with('\t') {
            return false;
        }
        let before = self.text.get(self.end..at).unwrap_or_default();
        let header = before
            .lines()
            .map(|line| line.split(" #").next().unwrap_or_default())
            .find(|line| line.contains(['|', '>']));
        !header.is_some_and(|header| {
            header.trim_end().ends_with(|last: char| {
                last.is_ascii_digit() || "+-".contains(last) && header.contains(|c: char| c.is_ascii_digit())
            })
        })
    }

    /// Looks for tabs in what stands between the last token and the byte `to`.
    fn gap(&self, to: usize) -> Result<(), Fault> {
        let gap = self.text.get(self.end..to).unwrap_or_default();
        let mut at = self.end;
        let mut margin = self.margin;
        for line in gap.split_inclusive('\n') {
            let begins = at == 0 || self.text.as_bytes().get(at - 1) == Some(&b'\n');
            if self.flow == 0 || margin.is_some() {
                indentation(line, begins, margin).map_err(|column| (at + column, TAB))?;
            }
            // after a comment or an indicator no scalar goes on
            margin = margin.filter(|_| line.trim().is_empty());
            at += line.len();
        }
        Ok(())
    }
}

/// Looks for a tab in the indentation of a line, and after its `-` and `?`; gives its column.
fn indentation(line: &str, begins: bool, margin: Option<usize>) -> Result<(), usize> {
    let content = line.trim_start_matches(' ');
    let column = line.len() - content.len();
    if begins && content.starts_with('\t') && margin.is_none_or(|margin| column < margin) {
        return Err(column);
    }
    let indicators = content.trim_start_matches(['-', '?', ' ']);
    let marker = content.starts_with("---");
    if !marker && indicators.len() < content.len() && indicators.starts_with('\t') {
        return Err(line.len() - indicators.len());
    }
    Ok(())
}

fn name_is_plain(name: &str, at: usize) -> Result<(), Fault> {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if plain { Ok(()) } else { Err((at, NAME)) }
}

/// Refuses `\/` and surrogates, which JSON has and YAML 1.1 has not.
fn escapes(quoted: &str, at: usize) -> Result<(), Fault> {
    let mut rest = quoted;
    while let Some(next) = rest.find('\\') {
        rest = &rest[next + 1..];
        let surrogate = rest.strip_prefix(['u']).is_some_and(|hex| {
            hex.starts_with(['d', 'D']) && hex.get(1..2).is_some_and(|second| "89abcdefABCDEF".contains(second))
        });
        if surrogate || rest.starts_with('/') {
            return Err((at + quoted.len() - rest.len() - 1, ESCAPE));
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    Ok(())
}
