//! Writes values in the layout of go-yaml v2.

use std::borrow::Cow;

use super::error::EmitError;
use super::style::{self, Position, Style};
use super::{Value, keys, number, quoted, read_back};
use crate::admission::field::FieldPath;

/// The column after which a text is folded at the next single space, as in go-yaml v2.
const WIDTH: usize = 80;
/// The indentation of each nesting level, in spaces.
const INDENT: usize = 2;
/// Maximum length of a simple key (`key: value`), in bytes. go-yaml writes a longer key after `?`, and its value after
/// `:` on a separate line.
const SIMPLE_KEY: usize = 128;

/// The type of node that directly contains a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parent {
    Document,
    List,
    Map,
}

/// A writer of one YAML document. It keeps the same state as libyaml's emitter, because this state determines the line
/// breaks.
pub(super) struct Writer<'o> {
    out: &'o mut String,
    /// The current column, in characters.
    column: usize,
    /// Whether the last character that was written is whitespace.
    whitespace: bool,
    /// Whether the current line contains only indentation and indicators, such as `-`.
    indention: bool,
    /// The positions in `out` where comments can follow: one for each scalar, empty list and empty mapping. `None` if
    /// positions are not recorded.
    pub(super) ends: Option<Vec<usize>>,
    /// The position after the header (such as `|-`) of the block scalar that is being written. `None` for other values.
    header: Option<usize>,
}

impl<'o> Writer<'o> {
    pub(super) fn new(out: &'o mut String) -> Self {
        Self { out, column: 0, whitespace: true, indention: true, ends: None, header: None }
    }

    /// Writes a document. Returns the positions where comments can follow. The list is empty if the writer does not
    /// record these positions.
    pub(super) fn document(mut self, value: &Value<'_>) -> Result<Vec<usize>, EmitError> {
        self.value(value, None, Parent::Document)?;
        self.indent(0);
        Ok(self.ends.unwrap_or_default())
    }

    /// Writes a value. `indent` is the indentation of the list or mapping that contains the value. It is `None` if the
    /// value is the document itself. `parent` is the type of node that contains the value.
    fn value(&mut self, value: &Value<'_>, indent: Option<usize>, parent: Parent) -> Result<(), EmitError> {
        match value {
            Value::Null => self.word("null"),
            Value::Bool(value) => self.word(if *value { "true" } else { "false" }),
            Value::Int(int) => self.word(&int.to_string()),
            Value::Uint(int) => self.word(&int.to_string()),
            Value::Float(float) => self.word(&number::float(*float)?),
            Value::Text(text) => self.text(&read_back::text(text)?, indent, Position::Other),
            Value::List(items) if items.is_empty() => self.word("[]"),
            Value::Map(entries) if entries.is_empty() => self.word("{}"),
            Value::List(items) => return self.list(items, indent, parent),
            Value::Map(entries) => return self.map(entries, indent),
        }
        let end = self.header.take().unwrap_or(self.out.len());
        if let Some(ends) = &mut self.ends {
            ends.push(end);
        }
        Ok(())
    }

    /// Writes a list. If the list is the value of a simple key (`key:`), its items have the indentation of the key.
    fn list(&mut self, items: &[Value<'_>], indent: Option<usize>, parent: Parent) -> Result<(), EmitError> {
        let level = parent == Parent::Map && !self.indention;
        let indent = indent.map_or(0, |indent| if level { indent } else { indent + INDENT });
        for (index, item) in items.iter().enumerate() {
            self.indent(indent);
            self.open('-');
            self.value(item, Some(indent), Parent::List)
                .map_err(|error| error.within(&FieldPath::root().index(index)))?;
        }
        Ok(())
    }

    fn map(&mut self, entries: &[(Cow<'_, str>, Value<'_>)], indent: Option<usize>) -> Result<(), EmitError> {
        let indent = indent.map_or(0, |indent| indent + INDENT);
        for (key, value) in keys::sorted(entries) {
            self.entry(key, value, indent).map_err(|error| error.within(&FieldPath::root().key(key)))?;
        }
        Ok(())
    }

    fn entry(&mut self, key: &str, value: &Value<'_>, indent: usize) -> Result<(), EmitError> {
        read_back::key(key)?;
        self.indent(indent);
        if key.len() <= SIMPLE_KEY && !style::analyse(key).multiline {
            self.text(key, Some(indent), Position::SimpleKey);
            self.write_char(':');
            (self.whitespace, self.indention) = (false, false);
        } else {
            self.open('?');
            self.text(key, Some(indent), Position::Other);
            self.header = None;
            self.indent(indent);
            self.open(':');
        }
        self.value(value, Some(indent), Parent::Map)
    }

    fn text(&mut self, text: &str, indent: Option<usize>, position: Position) {
        let indent = indent.map_or(INDENT, |indent| indent + INDENT);
        let fold = position == Position::Other;
        match style::select(text, style::analyse(text), position) {
            Style::Plain => self.plain(text, indent, fold),
            Style::Single => self.single_quoted(text, indent, fold),
            Style::Double => self.double_quoted(text, indent, fold),
            Style::Literal => self.literal(text, indent),
        }
    }

    /// Writes a text that is never quoted or folded, such as `null`, `[]` or a number.
    fn word(&mut self, word: &str) {
        self.separate();
        self.out.push_str(word);
        self.column += word.len();
        (self.whitespace, self.indention) = (false, false);
    }

    fn plain(&mut self, text: &str, indent: usize, fold: bool) {
        self.separate();
        let bytes = text.as_bytes();
        for (at, char) in text.char_indices() {
            if fold && char == ' ' && self.column > WIDTH && is_single_space(bytes, at) {
                self.indent(indent);
            } else {
                self.write_char(char);
                self.indention = false;
            }
        }
        (self.whitespace, self.indention) = (false, false);
    }

    fn single_quoted(&mut self, text: &str, indent: usize, fold: bool) {
        self.quote('\'');
        let mut broken = false;
        for (at, char) in text.char_indices() {
            if style::is_break(char) {
                self.write_char(char);
                (self.column, self.indention, broken) = (0, true, true);
                continue;
            }
            if char == ' ' {
                self.space(text, at, fold.then_some(indent));
                continue;
            }
            if broken {
                self.indent(indent);
            }
            if char == '\'' {
                self.write_char(char);
            }
            self.write_char(char);
            (self.indention, broken) = (false, false);
        }
        self.write_char('\'');
        (self.whitespace, self.indention) = (false, false);
    }

    /// Writes one space of a single-quoted string, or begins a new line instead if the current line is too long. `at`
    /// is the byte position of the space in `text`. `fold` is the indentation of the new line, or `None` if lines are
    /// not folded.
    fn space(&mut self, text: &str, at: usize, fold: Option<usize>) {
        let is_inside = at > 0 && at + 1 < text.len();
        match fold {
            Some(indent) if self.column > WIDTH && is_inside && is_single_space(text.as_bytes(), at) => {
                self.indent(indent);
            }
            _ => self.write_char(' '),
        }
    }

    fn double_quoted(&mut self, text: &str, indent: usize, fold: bool) {
        self.quote('"');
        let escapes_all = quoted::escapes_all(text);
        // whether the last character was a space without an escape
        let mut spaces = false;
        for (at, char) in text.char_indices() {
            if escapes_all || quoted::is_escaped(char) {
                self.column += quoted::escape(char, self.out);
            } else if fold && char == ' ' && !spaces && self.column > WIDTH && at > 0 && at + 1 < text.len() {
                self.fold_in_double_quotes(text, at, indent);
            } else {
                self.write_char(char);
            }
            spaces = char == ' ' && !escapes_all;
        }
        self.write_char('"');
        (self.whitespace, self.indention) = (false, false);
    }

    /// Begins a new line in a double-quoted string instead of writing the space at byte `at` of `text`. Writes a
    /// backslash if the new line starts with a space, because YAML would ignore this space. `indent` is the indentation
    /// of the new line.
    fn fold_in_double_quotes(&mut self, text: &str, at: usize, indent: usize) {
        // With this value, `indent` ends the line even if the line contains only indentation.
        self.indention = false;
        self.indent(indent);
        if text.as_bytes().get(at + 1) == Some(&b' ') {
            self.write_char('\\');
        }
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.separate();
        self.out.push('|');
        self.out.push_str(indentation_indicator(text));
        self.out.push_str(chomping_indicator(text));
        self.header = Some(self.out.len());
        self.end_line();
        (self.whitespace, self.indention) = (true, true);
        let mut broken = true;
        for char in text.chars() {
            if style::is_break(char) {
                self.write_char(char);
                (self.column, self.indention, broken) = (0, true, true);
                continue;
            }
            if broken {
                self.indent(indent);
            }
            self.write_char(char);
            (self.indention, broken) = (false, false);
        }
    }

    /// Begins a new line with `indent` spaces. If the current line contains only indentation and indicators, such as
    /// `-`, and has at most `indent` columns, no new line is needed. In this case, adds spaces to the current line up
    /// to the column `indent`.
    fn indent(&mut self, indent: usize) {
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.end_line();
        }
        while self.column < indent {
            self.write_char(' ');
        }
        (self.whitespace, self.indention) = (true, true);
    }

    fn end_line(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    /// Writes an indicator: `-` of an item, `?` of a key or `:` of a value. A nested list or mapping may begin on the
    /// same line.
    fn open(&mut self, indicator: char) {
        self.separate();
        self.write_char(indicator);
        self.whitespace = false;
    }

    fn quote(&mut self, quote: char) {
        self.separate();
        self.write_char(quote);
        (self.whitespace, self.indention) = (false, false);
    }

    /// Writes a space, unless the last character is whitespace.
    fn separate(&mut self) {
        if !self.whitespace {
            self.write_char(' ');
        }
    }

    fn write_char(&mut self, char: char) {
        self.out.push(char);
        self.column += 1;
    }
}

/// Returns whether the space at byte `at` has no other space directly before or after it.
fn is_single_space(bytes: &[u8], at: usize) -> bool {
    let is_space = |at: Option<usize>| at.and_then(|at| bytes.get(at)) == Some(&b' ');
    !is_space(at.checked_sub(1)) && !is_space(Some(at + 1))
}

/// Returns the indentation indicator of a block scalar. The indicator is necessary if the text begins with a space or
/// line break.
fn indentation_indicator(text: &str) -> &'static str {
    if text.starts_with(|char| char == ' ' || style::is_break(char)) { "2" } else { "" }
}

/// Returns the chomping indicator of a block scalar. It depends on the line breaks at the end of the text.
fn chomping_indicator(text: &str) -> &'static str {
    let mut last = text.chars().rev();
    match (last.next().is_some_and(style::is_break), last.next().is_none_or(style::is_break)) {
        (false, _) => "-",
        (true, false) => "",
        (true, true) => "+",
    }
}
