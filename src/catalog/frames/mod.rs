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

/// Extra capacity that is reserved in a buffer for `read_to_end`. It lets `read_to_end` detect the end of a file
/// without growing the buffer.
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
        if !self.reach_item()? {
            return Ok(false);
        }
        match self.length_at(self.read) {
            None => self.wait(),
            Some(0) => Err(self.misplaced("an item")),
            Some(length) => {
                self.item = self.read..self.read + length;
                self.read += length;
                Ok(true)
            }
        }
    }

    /// Passes the received items to `take`, one after the other. Faster than [`Frames::advance`], because `take` finds
    /// the end of an item while it decodes the item.
    ///
    /// The argument of `take` is the JSON text that begins with an item. The text may continue after the item, and it
    /// may end before the item ends. `take` returns the length of the item in bytes. If `take` returns an error and the
    /// item has not been received completely, the item is passed to `take` again when more bytes have been received.
    ///
    /// # Errors
    /// If the text is not a list, or if an item or the envelope is too large. Also returns the error of `take` if the
    /// item is complete.
    pub fn take_items<E: From<FrameError>>(&mut self, mut take: impl FnMut(&str) -> Result<usize, E>) -> Result<(), E> {
        while self.reach_item()? {
            let rest = self.buffer.get(self.read..).unwrap_or_default();
            let (taken, stop) = take_each(valid_start(rest), self.is_complete, &mut take);
            self.read += taken;
            match stop {
                Stop::NoItem if taken == 0 => return Err(self.misplaced("an item").into()),
                Stop::NoItem => {}
                Stop::Incomplete => break,
                Stop::Failed(error) => return self.incomplete_or(error),
            }
        }
        Ok(())
    }

    /// Waits for more bytes if the next item has not been received completely. Otherwise fails, because the item is not
    /// UTF-8, or with `error`.
    fn incomplete_or<E: From<FrameError>>(&mut self, error: E) -> Result<(), E> {
        let Some(length) = self.length_at(self.read) else { return Ok(self.wait().map(drop)?) };
        self.item = self.read..self.read + length;
        self.current()?;
        Err(error)
    }

    /// Moves to the beginning of the next item. Returns false if it has not been received, or at the end of the list.
    fn reach_item(&mut self) -> Result<bool, FrameError> {
        if self.buffer.len() < self.look_at && !self.is_complete {
            return Ok(false);
        }
        while let Some(byte) = self.peek() {
            match (self.state, byte) {
                (State::Opening, b'{') => self.skip_to(State::Members),
                (State::Opening, _) => return Err(self.misplaced("an object")),
                (State::Members | State::Items, b',') => self.read += 1,
                (State::Members, b'}') => self.skip_to(State::End),
                (State::Members, b'"') if self.member()? => {}
                (State::Members, b'"') => return self.wait(),
                (State::Members, _) => return Err(self.misplaced("a name in quotes")),
                (State::Items, b']') => self.skip_to(State::Members),
                (State::Items, _) => return Ok(true),
                (State::End, _) => return Err(self.misplaced("the end")),
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

    fn skip_to(&mut self, state: State) {
        self.read += 1;
        self.state = state;
    }

    fn length_at(&self, at: usize) -> Option<usize> {
        scan::length(self.buffer.get(at..)?)
    }

    /// Parses the next field of a Kubernetes list in JSON. Stores the fields `kind`, `apiVersion` and `metadata`, and
    /// skips all other fields. If the field is `items`, parses only the opening bracket, because the items are parsed
    /// one by one. Returns false if more bytes must be received first.
    fn member(&mut self) -> Result<bool, FrameError> {
        let Some(length) = self.length_at(self.read) else { return Ok(false) };
        let key = self.read..self.read + length;
        let colon = key.end + self.blanks_from(key.end);
        match self.buffer.get(colon) {
            None => return Ok(false),
            Some(b':') => {}
            Some(_) => return Err(self.misplaced("\":\"")),
        }
        let value = colon + 1 + self.blanks_from(colon + 1);
        let Some(first) = self.buffer.get(value) else { return Ok(false) };
        let is_items = self.buffer.get(key.clone()) == Some(b"\"items\"");
        self.has_items |= is_items;
        if is_items && *first == b'[' {
            self.read = value + 1;
            self.state = State::Items;
            return Ok(true);
        }
        let Some(length) = self.length_at(value) else { return Ok(false) };
        self.keep(key, value..value + length)?;
        self.read = value + length;
        Ok(true)
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

/// The reason why [`take_each`] stops.
enum Stop<E> {
    /// The item is not followed by a comma and another item.
    NoItem,
    /// The next item is probably incomplete.
    Incomplete,
    /// The next item is incomplete or invalid.
    Failed(E),
}

/// Passes the items at the start of `text` to `take`. Returns the length in bytes of the items that `take` accepted,
/// and of the separators after them. `is_complete` is whether no text follows.
fn take_each<E>(text: &str, is_complete: bool, mut take: impl FnMut(&str) -> Result<usize, E>) -> (usize, Stop<E>) {
    let (mut rest, blanks) = (text, [' ', '\t', '\r', '\n']);
    let stop = loop {
        let length = match take(rest) {
            Ok(length) => length,
            Err(error) => break Stop::Failed(error),
        };
        rest = rest.get(length..).unwrap_or_default().trim_start_matches(blanks);
        let Some(next) = rest.strip_prefix(',') else { break Stop::NoItem };
        rest = next.trim_start_matches(blanks);
        // The items of a list often have similar lengths.
        if rest.len() < length && !is_complete {
            break Stop::Incomplete;
        }
    };
    (text.len() - rest.len(), stop)
}

/// Returns the longest part at the start of `bytes` that is UTF-8.
fn valid_start(bytes: &[u8]) -> &str {
    let valid = |length| bytes.get(..length).and_then(|valid| std::str::from_utf8(valid).ok()).unwrap_or_default();
    std::str::from_utf8(bytes).unwrap_or_else(|error| valid(error.valid_up_to()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIST: &str = r#" {"apiVersion": "v1", "items": [{"a": "]}\"ä"}, {"b": [1, {}]} , "c", 4],
        "other": {"items": [5]}, "kind": "ThingList", "metadata": {"resourceVersion": "7", "continue": "x"}} "#;

    type Cut = Result<(Vec<String>, Envelope), FrameError>;

    /// Splits a list that arrives in parts of `at_once` bytes. `take` moves the items that are complete.
    fn cut_by(
        text: &[u8],
        at_once: usize,
        take: impl Fn(&mut Frames, &mut Vec<String>) -> Result<(), FrameError>,
    ) -> Cut {
        let (mut frames, mut items) = (Frames::default(), Vec::new());
        for bytes in text.chunks(at_once) {
            frames.push(bytes);
            take(&mut frames, &mut items)?;
        }
        frames.end();
        take(&mut frames, &mut items)?;
        frames.envelope().map(|envelope| (items, envelope))
    }

    fn cut(text: &[u8], at_once: usize) -> Cut {
        cut_by(text, at_once, |frames, items| {
            while frames.advance()? {
                items.push(frames.current()?.to_owned());
            }
            Ok(())
        })
    }

    /// Like [`cut`], with [`Frames::take_items`].
    fn taken(text: &[u8], at_once: usize) -> Cut {
        cut_by(text, at_once, |frames, items| {
            frames.take_items(|text| {
                let length = scan::length(text.as_bytes()).ok_or(FrameError::Misplaced("an item", 0))?;
                items.push(text[..length].to_owned());
                Ok(length)
            })
        })
    }

    #[test]
    fn a_list_is_cut_wherever_its_bytes_are() {
        let items = [r#"{"a": "]}\"ä"}"#, r#"{"b": [1, {}]}"#, r#""c""#, "4"].map(str::to_owned);
        for at_once in 1..LIST.len() {
            let (cut, envelope) = cut(LIST.as_bytes(), at_once).unwrap();
            assert_eq!(cut, items, "{at_once}");
            assert_eq!((envelope.kind.as_str(), envelope.metadata.r#continue.as_str()), ("ThingList", "x"));
            assert_eq!(taken(LIST.as_bytes(), at_once).unwrap(), (cut, envelope), "{at_once}");
        }
    }

    #[test]
    fn what_is_no_list_is_reported() {
        for text in ["[]", "{", "{\"items\":[{}", "{\"items\":[}]}", "{} x", "{\"a\" 1}", "{7:1}"] {
            assert!(cut(text.as_bytes(), 3).is_err() && taken(text.as_bytes(), 3).is_err(), "{text}");
        }
        for cut in [cut, taken] {
            assert_eq!(cut(b"{\"items\":[\"\xff\"]}", 99), Err(FrameError::Encoding(11)));
        }
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

    #[test]
    fn a_failing_item_is_passed_again_only_if_it_is_incomplete() {
        let (mut frames, mut passed) = (Frames::default(), Vec::new());
        let mut pass = |bytes: &[u8], frames: &mut Frames| {
            frames.push(bytes);
            frames.take_items(|text| {
                passed.push(text.to_owned());
                Err(FrameError::NoItems)
            })
        };
        assert_eq!(pass(b"{\"items\":[{\"a\":", &mut frames), Ok(()));
        assert_eq!(pass(b"1},{\"b\":", &mut frames), Err(FrameError::NoItems));
        assert_eq!(passed, ["{\"a\":", "{\"a\":1},{\"b\":"]);
    }

    proptest! {
        #[test]
        fn taken_items_are_those_of_a_parser(items in prop::collection::vec(".{0,30}", 0..20), at_once in 1_usize..300) {
            let items: Vec<_> = items.into_iter().map(|text| serde_json::json!({"a": [text]})).collect();
            let list = serde_json::json!({"items": items, "kind": "List"});
            for text in [list.to_string(), serde_json::to_string_pretty(&list).unwrap()] {
                let (taken, envelope) = taken(text.as_bytes(), at_once).unwrap();
                let taken: Vec<serde_json::Value> = taken.iter().map(|item| serde_json::from_str(item).unwrap()).collect();
                prop_assert_eq!(&taken, &items);
                prop_assert_eq!(envelope.kind, "List");
            }
        }

        #[test]
        fn any_bytes_are_cut_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200), at_once in 1_usize..50) {
            let _ = (cut(&bytes, at_once), taken(&bytes, at_once));
        }

        #[test]
        fn any_text_like_a_list_is_cut_or_refused(text in r#"[{}\[\],:"a\\ items1]{0,80}"#, at_once in 1_usize..50) {
            for text in [text.clone(), format!("{{\"items\":[{text}")] {
                let _ = (cut(text.as_bytes(), at_once), taken(text.as_bytes(), at_once));
            }
        }
    }
}
