//! Splits a JSON list into its items while it is received. At most one item and a part of the next one are in memory.

mod envelope;

use std::io::{self, Read};
use std::ops::Range;

pub use envelope::{Envelope, ListMetadata, type_of};

use crate::admission::scan;

/// Maximum size of an object, in bytes. It is far above 1.5 MiB, the size above which etcd rejects objects by default.
const MAX_OBJECT_BYTES: usize = 32 * 1024 * 1024;
/// Maximum size of the envelope of a list, in bytes. The envelope consists of the fields of the list response, except
/// `items`. These fields usually take less than a kilobyte.
const MAX_ENVELOPE_BYTES: usize = 64 * 1024;

/// Extra capacity that is reserved in a buffer for `read_to_end`. It lets `read_to_end` detect the end of a file without
/// growing the buffer.
pub(super) const PROBE_BYTES: usize = 32;

/// An error in the JSON text of a Kubernetes list, such as a PodList.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// An expected token is missing. The fields are the token and the byte offset.
    #[error("expected {0} at byte {1}")]
    Misplaced(&'static str, usize),
    /// An object in the list, or the envelope of the list (its fields except `items`), is too large. The first field is
    /// `an object` or `an envelope`. The second is the maximum size in bytes. The third is the byte offset.
    #[error("{0} of more than {1} bytes at byte {2}")]
    TooLarge(&'static str, usize, usize),
    /// The JSON object is not a list: it has no `items`.
    #[error("it has no items")]
    NoItems,
    /// The JSON text is incomplete: it ends before the list is closed. The field is the length of the text in bytes.
    #[error("it is incomplete: it ends after {0} bytes")]
    Cut(usize),
    /// An object is not UTF-8. The field is the byte offset.
    #[error("it is not UTF-8 at byte {0}")]
    Encoding(usize),
}

/// The position of the parser in the JSON text of a Kubernetes list, such as a PodList: before the opening brace, among
/// the fields of the list, inside `items`, or after the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Opening,
    Members,
    Items,
    End,
}

/// A push parser that splits a JSON list into its items.
#[derive(Debug)]
pub struct Frames {
    buffer: Vec<u8>,
    /// Number of bytes at the start of the buffer that were parsed.
    read: usize,
    /// Number of bytes of the list that were already removed from the buffer.
    before: usize,
    state: State,
    item: Range<usize>,
    /// The JSON text of the members `kind`, `apiVersion` and `metadata`, without the braces.
    envelope: Vec<u8>,
    /// Minimum length of the buffer at which parsing continues. While the buffer is shorter, the parser waits for more
    /// bytes, unless the list has been received completely.
    look_at: usize,
    is_complete: bool,
    has_items: bool,
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            buffer: Vec::new(),
            read: 0,
            before: 0,
            state: State::Opening,
            item: 0..0,
            envelope: Vec::new(),
            look_at: 0,
            is_complete: false,
            has_items: false,
        }
    }
}

impl Frames {
    /// Appends received bytes to the buffer.
    pub fn push(&mut self, bytes: &[u8]) {
        self.drop_read();
        self.buffer.extend(bytes);
    }

    /// Reads bytes of `from` and appends them to the buffer. Reserves `room` bytes in the buffer, and fills all of them
    /// but [`PROBE_BYTES`]. At the end of `from`, records that the list has been received completely.
    ///
    /// # Errors
    /// If reading fails.
    pub fn read(&mut self, from: &mut impl Read, room: usize) -> io::Result<()> {
        self.drop_read();
        self.buffer.reserve(room);
        let wanted = room.saturating_sub(PROBE_BYTES);
        let read = from.take(u64::try_from(wanted).unwrap_or(u64::MAX)).read_to_end(&mut self.buffer)?;
        self.is_complete |= read < wanted;
        Ok(())
    }

    /// Removes the parsed bytes from the buffer.
    fn drop_read(&mut self) {
        self.buffer.drain(..self.read);
        self.before += self.read;
        self.look_at = self.look_at.saturating_sub(self.read);
        self.read = 0;
    }

    /// Records that the list has been received completely.
    pub fn end(&mut self) {
        self.is_complete = true;
    }

    /// Returns whether the list has been received completely.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Advances to the next item of the list. Returns false if this item has not been received completely. Also returns
    /// false at the end of the list.
    ///
    /// # Errors
    /// If the text is not a list, or if an item or the envelope is too large.
    pub fn advance(&mut self) -> Result<bool, FrameError> {
        if self.buffer.len() < self.look_at && !self.is_complete {
            return Ok(false);
        }
        while let Some(byte) = self.peek() {
            let is_item = match self.state {
                State::Opening => self.open(byte).map(Some)?,
                State::Members => self.member(byte)?,
                State::Items => self.item(byte)?,
                State::End => return Err(self.misplaced("the end")),
            };
            match is_item {
                Some(true) => return Ok(true),
                Some(false) => {}
                None => return self.wait(),
            }
        }
        Ok(false)
    }

    /// Returns the JSON text of the current item.
    ///
    /// # Errors
    /// If the item is not UTF-8.
    pub fn current(&self) -> Result<&str, FrameError> {
        let item = self.buffer.get(self.item.clone()).unwrap_or_default();
        std::str::from_utf8(item)
            .map_err(|error| FrameError::Encoding(self.before + self.item.start + error.valid_up_to()))
    }

    /// Returns the envelope of the list. The envelope consists of the fields of the list response, except `items`.
    ///
    /// # Errors
    /// If the end of the list is not reached yet, or if a field of the envelope has the wrong type.
    pub fn envelope(&self) -> Result<Envelope, FrameError> {
        if self.state != State::End {
            return Err(FrameError::Cut(self.before + self.buffer.len()));
        }
        let text = [b"{", self.envelope.as_slice(), b"}"].concat();
        let envelope = serde_json::from_slice(&text).map_err(|_| FrameError::Misplaced("a list's metadata", 0))?;
        Ok(Envelope { has_items: self.has_items, ..envelope })
    }

    /// Returns the kind of the list, such as `ContextList`. Returns an empty string if the field `kind` has not been
    /// received yet.
    pub fn kind(&self) -> String {
        let text = [b"{", self.envelope.as_slice(), b"}"].concat();
        serde_json::from_slice(&text).map(|envelope: Envelope| envelope.kind).unwrap_or_default()
    }

    fn misplaced(&self, wanted: &'static str) -> FrameError {
        FrameError::Misplaced(wanted, self.before + self.read)
    }

    /// Postpones the next search for the end of a value until the pending bytes have grown by a quarter. Otherwise, the
    /// parser would search for the end of a large object after every packet. Returns false, because no item is
    /// complete. Fails if the pending bytes exceed the maximum size of an object.
    fn wait(&mut self) -> Result<bool, FrameError> {
        let pending = self.buffer.len() - self.read;
        if pending > MAX_OBJECT_BYTES {
            return Err(FrameError::TooLarge("an object", MAX_OBJECT_BYTES, self.before + self.read));
        }
        self.look_at = self.buffer.len() + pending / 4;
        Ok(false)
    }

    fn blanks_from(&self, at: usize) -> usize {
        let rest = self.buffer.get(at..).unwrap_or_default();
        rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count()
    }

    /// Skips white space and returns the byte after it; `None` at the end of the buffer.
    fn peek(&mut self) -> Option<u8> {
        self.read += self.blanks_from(self.read);
        self.buffer.get(self.read).copied()
    }

    fn open(&mut self, byte: u8) -> Result<bool, FrameError> {
        if byte != b'{' {
            return Err(self.misplaced("an object"));
        }
        self.read += 1;
        self.state = State::Members;
        Ok(false)
    }

    fn item(&mut self, byte: u8) -> Result<Option<bool>, FrameError> {
        match byte {
            b',' => self.read += 1,
            b']' => {
                self.read += 1;
                self.state = State::Members;
            }
            _ => {
                let Some(length) = self.length_at(self.read) else { return Ok(None) };
                if length == 0 {
                    return Err(self.misplaced("an item"));
                }
                self.item = self.read..self.read + length;
                self.read += length;
                return Ok(Some(true));
            }
        }
        Ok(Some(false))
    }

    fn length_at(&self, at: usize) -> Option<usize> {
        scan::length(self.buffer.get(at..)?)
    }

    fn member(&mut self, byte: u8) -> Result<Option<bool>, FrameError> {
        match byte {
            b',' => self.read += 1,
            b'}' => {
                self.read += 1;
                self.state = State::End;
            }
            b'"' => return self.named(),
            _ => return Err(self.misplaced("a name in quotes")),
        }
        Ok(Some(false))
    }

    /// Parses the next field of a Kubernetes list in JSON. Stores the fields `kind`, `apiVersion` and `metadata`, and
    /// skips all other fields. If the field is `items`, parses only the opening bracket, because `Frames::item` parses
    /// the items one by one.
    ///
    /// Returns `Some(false)` if the field was parsed, and `None` if more bytes must be received first. Never returns
    /// `Some(true)`. Only `Frames::item` returns this value, when it has parsed an item.
    fn named(&mut self) -> Result<Option<bool>, FrameError> {
        let Some(length) = self.length_at(self.read) else { return Ok(None) };
        let key = self.read..self.read + length;
        let colon = key.end + self.blanks_from(key.end);
        match self.buffer.get(colon) {
            None => return Ok(None),
            Some(b':') => {}
            Some(_) => return Err(self.misplaced("\":\"")),
        }
        let value = colon + 1 + self.blanks_from(colon + 1);
        let Some(first) = self.buffer.get(value) else { return Ok(None) };
        let is_items = self.buffer.get(key.clone()) == Some(b"\"items\"");
        self.has_items |= is_items;
        if is_items && *first == b'[' {
            self.read = value + 1;
            self.state = State::Items;
            return Ok(Some(false));
        }
        let Some(length) = self.length_at(value) else { return Ok(None) };
        self.keep(key, value..value + length)?;
        self.read = value + length;
        Ok(Some(false))
    }

    fn keep(&mut self, key: Range<usize>, value: Range<usize>) -> Result<(), FrameError> {
        let (key, value) = (self.buffer.get(key).unwrap_or_default(), self.buffer.get(value).unwrap_or_default());
        let is_known = [&b"\"kind\""[..], b"\"apiVersion\"", b"\"metadata\""].contains(&key);
        if !is_known {
            return Ok(());
        }
        if self.envelope.len() + value.len() > MAX_ENVELOPE_BYTES {
            return Err(FrameError::TooLarge("an envelope", MAX_ENVELOPE_BYTES, self.before + self.read));
        }
        if !self.envelope.is_empty() {
            self.envelope.push(b',');
        }
        self.envelope.extend([key, b":", value].concat());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIST: &str = r#" {"apiVersion": "v1", "items": [{"a": "]}\"ä"}, {"b": [1, {}]} , "c", 4],
        "other": {"items": [5]}, "kind": "ThingList", "metadata": {"resourceVersion": "7", "continue": "x"}} "#;

    fn cut(text: &[u8], at_once: usize) -> Result<(Vec<String>, Envelope), FrameError> {
        let (mut frames, mut items) = (Frames::default(), Vec::new());
        let mut take = |frames: &mut Frames| {
            while frames.advance()? {
                items.push(frames.current()?.to_owned());
            }
            Ok(())
        };
        for bytes in text.chunks(at_once) {
            frames.push(bytes);
            take(&mut frames)?;
        }
        frames.end();
        take(&mut frames)?;
        frames.envelope().map(|envelope| (items, envelope))
    }

    #[test]
    fn a_list_is_cut_wherever_its_bytes_are() {
        let items = [r#"{"a": "]}\"ä"}"#, r#"{"b": [1, {}]}"#, r#""c""#, "4"].map(str::to_owned);
        for at_once in 1..LIST.len() {
            let (cut, envelope) = cut(LIST.as_bytes(), at_once).unwrap();
            assert_eq!(cut, items, "{at_once}");
            assert_eq!((envelope.kind.as_str(), envelope.metadata.r#continue.as_str()), ("ThingList", "x"));
        }
    }

    #[test]
    fn what_is_no_list_is_reported() {
        for text in ["[]", "{", "{\"items\":[{}", "{\"items\":[}]}", "{} x", "{\"a\" 1}", "{7:1}"] {
            assert!(cut(text.as_bytes(), 3).is_err(), "{text}");
        }
        assert_eq!(cut(b"{\"items\":[\"\xff\"]}", 99), Err(FrameError::Encoding(11)));
        let wide = format!("{{\"metadata\":\"{}\"}}", "x".repeat(MAX_ENVELOPE_BYTES));
        assert!(matches!(cut(wide.as_bytes(), 1 << 20), Err(FrameError::TooLarge("an envelope", ..))));
        assert_eq!(cut(b"{}", 1).unwrap(), (Vec::new(), Envelope::default()));
    }

    #[test]
    fn an_object_is_bounded() {
        let mut frames = Frames::default();
        frames.push(b"{\"items\":[\"");
        let piece = vec![b'x'; 1 << 20];
        let pushed = (0..64).take_while(|_| {
            frames.push(&piece);
            frames.advance().is_ok()
        });
        let most = MAX_OBJECT_BYTES >> 20;
        assert!((most..=most * 3 / 2).contains(&pushed.count()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_cut_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200), at_once in 1_usize..50) {
            let _ = cut(&bytes, at_once);
        }

        #[test]
        fn any_text_like_a_list_is_cut_or_refused(text in r#"[{}\[\],:"a\\ items1]{0,80}"#, at_once in 1_usize..50) {
            let _ = cut(text.as_bytes(), at_once);
            let _ = cut(format!("{{\"items\":[{text}").as_bytes(), at_once);
        }
    }
}
