//! Parses texts that consist only of JSON. `serde_json` parses the values, and a separate scanner finds their
//! positions.
//!
//! A separate parser is needed, because kubectl first tries to parse a text as JSON. It parses the text as YAML only if
//! the text is not JSON. Nearly all JSON is also YAML. But a JSON parser and a YAML parser treat surrogate pairs, long
//! keys, and floats without a fraction (`1.0`) differently.

use serde_json::Value;

use super::error::{Problem, YamlError};
use super::mapping::by_key;
use super::place::{Entry, Kids, Place, Spot};
use super::stream::Chunk;
use super::{Document, Limits};

/// Parses the documents of a text that consists only of JSON objects and arrays. `None` for other texts, and if a limit
/// is exceeded.
pub(super) fn read(chunk: Chunk<'_>, limits: &Limits) -> Option<Vec<Document>> {
    if !chunk.text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let values = serde_json::Deserializer::from_str(chunk.text).into_iter::<Value>();
    let values = values.collect::<Result<Vec<_>, _>>().ok()?;
    let mut walk = Walk { chunk, at: 0, line: chunk.lines + 1, column: 1, nodes: limits.nodes };
    let document = |value| Some(Document { value, aliased: 0, spot: walk.value(limits.depth)?, has_duplicates: true });
    values.into_iter().map(document).collect()
}

/// The JSON values at the start of a text.
pub(super) struct Start {
    /// The end of each value, as a position in the text in bytes.
    pub(super) ends: Vec<usize>,
    /// The reason why the text after these values is not JSON. `None` if the whole text is JSON.
    pub(super) error: Option<YamlError>,
}

/// Finds the JSON values at the start of a text. Finds none if the text does not begin with a JSON object or array.
pub(super) fn start(chunk: Chunk<'_>) -> Start {
    let mut start = Start { ends: Vec::new(), error: None };
    if !chunk.text.trim_start().starts_with(['{', '[']) {
        return start;
    }
    let mut values = serde_json::Deserializer::from_str(chunk.text).into_iter::<Value>();
    while let Some(value) = values.next() {
        match value {
            Ok(_) => start.ends.push(values.byte_offset()),
            Err(error) => {
                start.error = Some(yaml_error(chunk, &error));
                break;
            }
        }
    }
    start
}

/// Converts an error of `serde_json` about the text of `chunk`.
fn yaml_error(chunk: Chunk<'_>, error: &serde_json::Error) -> YamlError {
    let lines = chunk.text.split_inclusive('\n').take(error.line().saturating_sub(1));
    let at = lines.map(str::len).sum::<usize>() + error.column().saturating_sub(1);
    let text = error.to_string();
    let problem = match text.split_once(" at line ").map_or(&*text, |(problem, _)| problem) {
        "number out of range" => Problem::OutOfRange,
        problem => Problem::AfterJson(problem.to_owned()),
    };
    YamlError { place: chunk.place(at), problem }
}

/// A scanner that finds the positions of values in a valid JSON text. Its methods return `None` if a limit is exceeded.
struct Walk<'t> {
    chunk: Chunk<'t>,
    at: usize,
    line: u32,
    column: u32,
    nodes: usize,
}

impl Walk<'_> {
    fn value(&mut self, depth: usize) -> Option<Spot> {
        self.nodes = self.nodes.checked_sub(1)?;
        let mut place = self.here()?;
        let kids = match self.peek()? {
            b'{' => self.members(depth.checked_sub(1)?)?,
            b'[' => self.elements(depth.checked_sub(1)?)?,
            b'"' => self.string()?,
            _ => self.word()?,
        };
        place.end = self.chunk.byte + self.at;
        Some(Spot { place, kids })
    }

    fn members(&mut self, depth: usize) -> Option<Kids> {
        let mut entries = Vec::new();
        self.advance();
        while self.more()? {
            let mut key_place = self.here()?;
            let from = self.at;
            self.string()?;
            key_place.end = self.chunk.byte + self.at;
            let key = unquoted(self.chunk.text.get(from..self.at)?)?;
            self.here()?;
            self.advance();
            entries.push(Entry { key, key_place, spot: self.value(depth)?, merged: false });
        }
        entries.sort_by(by_key);
        Some(Kids::Map(entries))
    }

    fn elements(&mut self, depth: usize) -> Option<Kids> {
        let mut items = Vec::new();
        self.advance();
        while self.more()? {
            items.push(self.value(depth)?);
        }
        Some(Kids::List(items))
    }

    /// Skips the comma before the next member or element. At the end of the object or array, skips the closing bracket.
    /// Returns `Some(true)` if another member or element follows. Returns `None` at the end of the text.
    fn more(&mut self) -> Option<bool> {
        self.here()?;
        match self.peek()? {
            b'}' | b']' => {
                self.advance();
                return Some(false);
            }
            b',' => self.advance(),
            _ => {}
        }
        Some(true)
    }

    fn string(&mut self) -> Option<Kids> {
        self.advance();
        while self.peek()? != b'"' {
            if self.peek()? == b'\\' {
                self.advance();
            }
            self.advance();
        }
        self.advance();
        Some(Kids::None)
    }

    fn word(&mut self) -> Option<Kids> {
        while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)) {
            self.advance();
        }
        Some(Kids::None)
    }

    /// Skips white space and returns the position of the next character. `None` at the end of the text.
    fn here(&mut self) -> Option<Place> {
        while self.peek()?.is_ascii_whitespace() {
            self.advance();
        }
        let start = self.chunk.byte + self.at;
        Some(Place { line: self.line, column: self.column, start, end: start })
    }

    fn peek(&self) -> Option<u8> {
        self.chunk.text.as_bytes().get(self.at).copied()
    }

    fn advance(&mut self) {
        match self.peek() {
            Some(b'\n') => (self.line, self.column) = (self.line + 1, 1),
            // Continuation bytes of a character do not add a column.
            Some(0x80..=0xbf) | None => {}
            Some(_) => self.column += 1,
        }
        self.at += 1;
    }
}

fn unquoted(key: &str) -> Option<Box<str>> {
    if key.contains('\\') {
        return serde_json::from_str(key).ok();
    }
    key.get(1..key.len().checked_sub(1)?).map(Box::from)
}
