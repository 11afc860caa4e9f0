//! Splits a stream of documents before parsing, as kubectl does: at every line that begins with `---`.
//!
//! Source: `YAMLReader.Read` of k8s.io/apimachinery.

use super::breaks;
use super::{Place, Problem, YamlError};

/// The text of one document, and its position in the whole text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk<'t> {
    pub(super) text: &'t str,
    /// Number of bytes before `text` in the YAML stream, which can contain several documents.
    pub(super) byte: usize,
    /// Number of lines before `text` in the YAML stream, which can contain several documents.
    pub(super) lines: u32,
    /// The original text, if line breaks in `text` were replaced.
    pub(super) original: Option<&'t str>,
}

/// An iterator over the documents of a YAML stream. The iteration ends after an invalid separator.
pub(super) struct Chunks<'t> {
    rest: Option<Chunk<'t>>,
    /// The `---` line after the document that was returned last. The next call of `next` checks that no text other than
    /// a comment follows `---` on this line.
    separator: Option<Chunk<'t>>,
    /// Whether to split documents as kyaml does. kyaml splits only at a separator that follows another line and ends
    /// with a line feed.
    between_lines: bool,
}

impl<'t> Chunk<'t> {
    /// Returns a chunk that contains the whole `text`. Removes a byte order mark at the start of `text`.
    pub(super) fn whole(text: &'t str) -> Self {
        let body = text.strip_prefix('\u{feff}').unwrap_or(text);
        Self { text: body, byte: text.len() - body.len(), lines: 0, original: None }
    }

    /// Returns the position of the character at byte `at` of `text`.
    pub(super) fn place(&self, at: usize) -> Place {
        let before = self.text.get(..at).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        Place {
            line: self.lines + before.bytes().filter(|byte| *byte == b'\n').count() as u32 + 1,
            column: line.chars().count() as u32 + 1,
            start: self.byte + at,
            end: self.byte + at + 1,
        }
    }

    /// Splits the chunk into two chunks. The first chunk contains the first `at` bytes of `text`, and the second chunk
    /// contains the rest.
    pub(super) fn split(self, at: usize) -> (Self, Self) {
        let (text, rest) = self.text.split_at(at);
        let lines = self.lines + text.bytes().filter(|byte| *byte == b'\n').count() as u32;
        (Self { text, ..self }, Self { text: rest, byte: self.byte + at, lines, original: None })
    }

    /// Returns the chunk without white space at its start, up to the end of the first line.
    pub(super) fn after_blank(self) -> Self {
        let line = self.text.find('\n').map_or(self.text.len(), |end| end + 1);
        let blank = self.text.find(|character: char| !character.is_whitespace()).unwrap_or(self.text.len());
        self.split(blank.min(line)).1
    }

    /// Returns the text with replacements for characters that go-yaml and Portcullis' parser treat differently. These
    /// characters are byte order marks, and the line breaks that only go-yaml recognizes, such as U+2028. `None` if
    /// there is nothing to replace.
    ///
    /// # Errors
    ///
    /// If it is not certain how go-yaml treats one of the line breaks, for example next to `---`.
    pub(super) fn with_line_feeds(&self) -> Result<Option<String>, YamlError> {
        breaks::replaced(self.text).map_err(|at| YamlError { place: self.place(at), problem: breaks::problem() })
    }

    /// Replaces the text of the chunk with `text`, and stores the previous text in `original`. Returns the chunk
    /// unchanged if `text` is `None`.
    pub(super) fn replaced<'s>(self, text: Option<&'s str>) -> Chunk<'s>
    where
        't: 's,
    {
        text.map_or(self, |text| Chunk { text, original: Some(self.text), ..self })
    }

    /// Converts an error of Portcullis' parser to the error that is reported. If characters were replaced before
    /// parsing ([`Chunk::with_line_feeds`]), the result is a [`Problem::Dialect`], because go-yaml may accept the
    /// original text. Otherwise, the error stays unchanged.
    pub(super) fn refused(&self, error: YamlError) -> YamlError {
        let is_indentation = error.is_indentation();
        let problem = match error.problem {
            problem if self.original.is_none() => problem,
            Problem::Syntax(text) | Problem::Dialect(text) if is_indentation => Problem::Dialect(text),
            _ => breaks::problem(),
        };
        YamlError { problem, ..error }
    }

    fn separator(&self, between_lines: bool) -> Option<usize> {
        if !between_lines && self.text.starts_with("---") {
            return Some(0);
        }
        let at = self.text.find("\n---")? + 1;
        (!between_lines || self.text[at..].contains('\n')).then_some(at)
    }

    /// Returns an error if text other than a comment follows the separator `---` on the same line.
    fn check_separator(&self) -> Result<(), YamlError> {
        let after = self.text.get(3..).unwrap_or_default().trim();
        if after.is_empty() || after.starts_with('#') {
            return Ok(());
        }
        let place = Place { line: self.lines + 1, column: 1, start: self.byte, end: self.byte + 3 };
        Err(YamlError { place, problem: Problem::Separator(after.to_owned()) })
    }
}

impl<'t> Chunks<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { rest: Some(Chunk::whole(text)), separator: None, between_lines: false }
    }

    pub(super) fn of_manifests(text: &'t str) -> Self {
        Self { between_lines: true, ..Self::new(text) }
    }
}

impl<'t> Iterator for Chunks<'t> {
    type Item = Result<Chunk<'t>, YamlError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(Err(error)) = self.separator.take().map(|line| line.check_separator()) {
            self.rest = None;
            return Some(Err(error));
        }
        let rest = self.rest.take()?;
        let Some(at) = rest.separator(self.between_lines) else { return Some(Ok(rest)) };
        let (chunk, from) = rest.split(at);
        let line = from.text.find('\n').map_or(from.text.len(), |end| end + 1);
        let (separator, rest) = from.split(line);
        (self.separator, self.rest) = (Some(separator), Some(rest));
        Some(Ok(chunk))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifests(text: &str) -> Vec<&str> {
        Chunks::of_manifests(text).map(|chunk| chunk.unwrap().text).collect()
    }

    #[test]
    fn manifests_are_cut_between_lines_only() {
        assert_eq!(manifests("---\na: b\n--- # next\nc: d\n---"), ["---\na: b\n", "c: d\n---"]);
        assert_eq!(manifests("a: b\n---\n---\nc: d\n"), ["a: b\n", "---\nc: d\n"]);
    }
}
