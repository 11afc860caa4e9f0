//! A scanner that finds members in a JSON text. It does not parse their values.
//!
//! Most of an AdmissionReview consists of objects, and most of their content is never parsed. The other fields take
//! about a kilobyte. The scanner skips a value by searching for its quotes or brackets. A parser then reads only the
//! values that are needed.

use std::borrow::Cow;

use memchr::memchr;
use serde_json::Value;

use super::brackets::{Bracket, Brackets};
use super::checked::{self, Checked};

/// Maximum length, in bytes, of strings that are scanned eight bytes at a time. Longer strings are scanned with
/// `memchr`, which has a higher start-up cost. Most strings are shorter.
const SHORT: usize = 32;

/// A scanner that walks a JSON text from member to member.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// Whether the next member is the first one of its object.
    is_first: bool,
    /// Positions of nested values in `text` that an earlier scan found. The scanner skips these values.
    jumps: &'a [Jump],
}

/// The position of a nested object or list in a JSON value. The first scan of the value records it, so that a second
/// scan can skip the object or list. `from` and `to` are the start and the end, in bytes from the start of the value.
/// Only positions at the nesting level [`JUMPED`] are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Jump {
    from: usize,
    to: usize,
}

/// The nesting level of the objects and lists whose positions are recorded as [`Jump`]s, so that a later scan can skip
/// them. The outermost object has level 1, and `spec.imports` in an Installation has level 3. A value at this level is
/// usually skipped or parsed as a whole.
const JUMPED: usize = 3;
/// Maximum number of positions that one scan of a JSON value records. Each position is the start and the end of a
/// nested object or list, which a second scan can then skip. A higher limit would save little time: if a value contains
/// more than 64 such objects and lists, they are usually small.
const MAX_JUMPS: usize = 64;

/// A valid JSON value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CheckedValue<'a> {
    /// The JSON text of the value.
    pub(crate) text: &'a str,
    /// The maximum depth to which objects and lists are nested in the value. 0 if the value is neither of them.
    pub(crate) depth: usize,
    /// Whether there is white space between the tokens of the value.
    pub(crate) has_blanks: bool,
}

/// The reason why a text could not be scanned.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread {
    /// A token is missing. The fields are a description of the token, and the offset in bytes at which the token is
    /// expected.
    #[error("expected {0} at byte {1}")]
    Misplaced(&'static str, usize),
    /// A value that is not valid JSON.
    #[error("{0}")]
    Malformed(#[from] serde_json::Error),
}

impl From<Unread> for String {
    fn from(unread: Unread) -> Self {
        unread.to_string()
    }
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, is_first: true, jumps: &[] }
    }

    /// Returns the scanner with `jumps`, the start and end positions of nested values in this text. An earlier scan
    /// recorded them with [`Scanner::value_and_jumps`]. The scanner uses them to skip these values without reading
    /// their content.
    pub(super) fn jumping(self, jumps: &'a [Jump]) -> Self {
        Self { jumps, ..self }
    }

    /// Returns the scanner at the offset `at`, in bytes.
    pub(crate) fn starting_at(self, at: usize) -> Self {
        Self { at, ..self }
    }

    /// Returns the scan position, as an offset in bytes.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Enters the JSON object that begins at the current position. The next call of `key` then returns the name of its
    /// first member. Returns an error if no object begins there.
    pub(crate) fn open(&mut self) -> Result<(), Unread> {
        self.is_first = true;
        self.expect(b'{', "an object")
    }

    /// Returns the name of the next member. The caller must read or enter the value of the member before the next call.
    /// Returns `None` at the end of the object.
    pub(crate) fn key(&mut self) -> Result<Option<Cow<'a, str>>, Unread> {
        let is_first = std::mem::take(&mut self.is_first);
        match self.peek() {
            Some(b'}') => {
                self.at += 1;
                return Ok(None);
            }
            Some(b',') if !is_first => self.at += 1,
            _ if !is_first => return Err(self.misplaced("\",\" or \"}\"")),
            _ => {}
        }
        let quoted = self.string()?;
        self.expect(b':', "\":\"")?;
        Ok(Some(quoted))
    }

    /// Enters the JSON list that begins at the current position. Returns an error if no list begins there.
    pub(crate) fn open_list(&mut self) -> Result<(), Unread> {
        self.is_first = true;
        self.expect(b'[', "a list")
    }

    /// Moves to the next item of a list. The caller must read or enter the item before the next call. Returns false at
    /// the end of the list.
    pub(crate) fn item(&mut self) -> Result<bool, Unread> {
        let is_first = std::mem::take(&mut self.is_first);
        match self.peek() {
            Some(b']') => {
                self.at += 1;
                Ok(false)
            }
            Some(b',') if !is_first => {
                self.at += 1;
                Ok(true)
            }
            _ if is_first => Ok(true),
            _ => Err(self.misplaced("\",\" or \"]\"")),
        }
    }

    /// Returns whether the value at the scan position is an object.
    pub(crate) fn is_at_object(&mut self) -> bool {
        self.peek() == Some(b'{')
    }

    /// Returns whether the value at the scan position is a list.
    pub(crate) fn is_at_list(&mut self) -> bool {
        self.peek() == Some(b'[')
    }

    /// Returns whether the value at the scan position is a string.
    pub(crate) fn is_at_string(&mut self) -> bool {
        self.peek() == Some(b'"')
    }

    /// Returns the value at the scan position, and advances the scan position past it. Unlike [`Scanner::value`],
    /// checks that the value is valid JSON.
    pub(crate) fn checked_value(&mut self) -> Result<CheckedValue<'a>, Unread> {
        self.peek();
        let rest = self.text.get(self.at..).unwrap_or_default();
        let checked = checked::check(rest).and_then(|Checked { length, depth, has_blanks }| {
            Some(CheckedValue { text: rest.get(..length)?, depth, has_blanks })
        });
        let value = checked.ok_or_else(|| self.misplaced("a JSON value"))?;
        self.at += value.text.len();
        Ok(value)
    }

    /// Returns the JSON text of the value at the scan position, and advances the scan position past this value.
    pub(crate) fn value(&mut self) -> Result<&'a str, Unread> {
        self.value_and_jumps(&mut Vec::new())
    }

    /// Returns the text of the value, like [`Scanner::value`]. Also records the positions of nested values in `jumps`,
    /// so that a second scan of the value is faster.
    pub(super) fn value_and_jumps(&mut self, jumps: &mut Vec<Jump>) -> Result<&'a str, Unread> {
        let first = self.peek();
        let start = self.at;
        match first {
            Some(b'"') => self.skip_string()?,
            Some(b'{' | b'[') => match self.jumps.binary_search_by_key(&start, |jump| jump.from) {
                Ok(known) => self.at = self.jumps.get(known).map_or(start, |jump| jump.to),
                Err(_) => self.skip_nested(jumps)?,
            },
            _ => self.skip_word(),
        }
        match self.text.get(start..self.at) {
            Some(value) if !value.is_empty() => Ok(value),
            _ => Err(self.misplaced("a value")),
        }
    }

    /// Parses the value at the scan position, and advances the scan position past this value.
    pub(crate) fn parse(&mut self) -> Result<Value, Unread> {
        if self.peek() == Some(b'"') {
            return Ok(Value::String(self.string()?.into_owned()));
        }
        let rest = self.text.get(self.at..).unwrap_or_default();
        let mut values = serde_json::Deserializer::from_str(rest).into_iter();
        let value = values.next().ok_or_else(|| self.misplaced("a value"))??;
        self.at += values.byte_offset();
        Ok(value)
    }

    /// Checks that only white space follows the current position. Returns an error otherwise.
    pub(crate) fn end(&mut self) -> Result<(), Unread> {
        if self.peek().is_none() { Ok(()) } else { Err(self.misplaced("the end")) }
    }

    /// Skips white space and returns the next byte without consuming it; `None` at the end of the text.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.as_bytes().get(self.at..)?;
        // Most JSON texts contain no white space between tokens.
        if let Some(first) = rest.first()
            && *first > b' '
        {
            return Some(*first);
        }
        let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
        self.at += blanks;
        rest.get(blanks).copied()
    }

    fn expect(&mut self, wanted: u8, name: &'static str) -> Result<(), Unread> {
        if self.peek() != Some(wanted) {
            return Err(self.misplaced(name));
        }
        self.at += 1;
        Ok(())
    }

    /// Returns the string at the scan position, and advances the scan position past it. Returns an error if the value
    /// there is not a string.
    pub(crate) fn string(&mut self) -> Result<Cow<'a, str>, Unread> {
        if self.peek() != Some(b'"') {
            return Err(self.misplaced("a name in quotes"));
        }
        let start = self.at;
        if let Some(plain) = self.text.get(start + 1..).and_then(checked::plain_string) {
            self.at = start + plain.len() + 2;
            return Ok(Cow::Borrowed(plain));
        }
        self.skip_string()?;
        Ok(Cow::Owned(serde_json::from_str(self.text.get(start..self.at).unwrap_or_default())?))
    }

    fn skip_string(&mut self) -> Result<(), Unread> {
        self.at = self.after_string(self.at)?;
        Ok(())
    }

    /// Returns the offset after the string whose opening quote is at `at`.
    fn after_string(&self, at: usize) -> Result<usize, Unread> {
        match self.text.as_bytes().get(at + 1..).and_then(closing_quote) {
            Some(end) => Ok(at + end + 2),
            None => Err(Unread::Misplaced("a closing quote", at + 1)),
        }
    }

    fn skip_nested(&mut self, jumps: &mut Vec<Jump>) -> Result<(), Unread> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let (mut depth, mut from) = (0_usize, 0);
        for Bracket { at, opens } in Brackets::of(rest) {
            // The first bracket opens the value; the scan stops at the bracket that closes it.
            let outside = if opens { depth } else { depth - 1 };
            depth = if opens { depth + 1 } else { outside };
            match (outside + 1, opens) {
                (JUMPED, true) => from = at,
                (JUMPED, false) if jumps.len() < MAX_JUMPS => jumps.push(Jump { from, to: at + 1 }),
                (1, false) => {
                    self.at += at + 1;
                    return Ok(());
                }
                _ => {}
            }
        }
        Err(Unread::Misplaced("a closing quote or bracket", self.text.len()))
    }

    fn skip_word(&mut self) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        self.at += rest.iter().take_while(is_part).count();
    }

    fn misplaced(&self, wanted: &'static str) -> Unread {
        Unread::Misplaced(wanted, self.at)
    }
}

/// Returns the length in bytes of the JSON value at the start of `bytes`. The content of the value is not checked.
/// `None` if the value is incomplete. A number, `true`, `false` or `null` at the very end of `bytes` counts as
/// incomplete, because more digits or letters could follow.
pub(crate) fn length(bytes: &[u8]) -> Option<usize> {
    match bytes.first()? {
        b'"' => closing_quote(bytes.get(1..)?).map(|end| end + 2),
        b'{' | b'[' => {
            let mut depth = 0_usize;
            let mut brackets = Brackets::of(bytes);
            let end = brackets.find(|bracket| {
                depth = if bracket.opens { depth + 1 } else { depth.saturating_sub(1) };
                depth == 0
            });
            end.map(|bracket| bracket.at + 1)
        }
        _ => bytes.iter().position(|byte| matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n')),
    }
}

/// Returns the maximum depth to which objects and lists are nested in a JSON text. Does not check whether the text is
/// valid JSON.
pub(super) fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for Bracket { opens, .. } in Brackets::of(text.as_bytes()) {
        depth = if opens { depth + 1 } else { depth.saturating_sub(1) };
        deepest = deepest.max(depth);
    }
    deepest
}

/// Returns the offset of the quote that closes a string; `None` if there is none. `bytes` begins after the opening
/// quote.
#[inline]
fn closing_quote(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < SHORT
        && let Some(word) = bytes.get(at..)?.first_chunk()
    {
        let found = holds(u64::from_le_bytes(*word), b'"');
        if found != 0 {
            at += found.trailing_zeros() as usize / 8;
            let is_escaped = at > 0 && bytes.get(at - 1) == Some(&b'\\');
            return if is_escaped { quote_after_even_backslashes(bytes, at) } else { Some(at) };
        }
        at += size_of::<u64>();
    }
    quote_after_even_backslashes(bytes, at)
}

/// Returns the offset of the first quote at or after the offset `at` that is not escaped. This quote closes the string.
/// Examines only quotes and the backslashes before them, because a long text may contain many escapes.
#[cold]
fn quote_after_even_backslashes(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr(b'"', bytes.get(at..)?)?;
        let backslashes = bytes.iter().take(at).rev().take_while(|byte| **byte == b'\\').count();
        if backslashes % 2 == 0 {
            return Some(at);
        }
        at += 1;
    }
}

/// Searches the eight bytes of `word` for `byte`. The lowest set bit of the result is in the first byte that equals
/// `byte`. If no byte equals `byte`, the result is zero.
fn holds(word: u64, byte: u8) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let differs = word ^ (ONES * u64::from(byte));
    differs.wrapping_sub(ONES) & !differs & (ONES << 7)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn members(text: &str) -> Result<Vec<(String, &str)>, Unread> {
        let mut scanner = Scanner::new(text);
        scanner.open()?;
        let mut members = Vec::new();
        while let Some(key) = scanner.key()? {
            members.push((key.into_owned(), scanner.value()?));
        }
        scanner.end()?;
        Ok(members)
    }

    #[test]
    fn returns_values_as_raw_text() {
        let text = " { \"a\" : {\"b\":[1,\"}\\\"\"]} ,\"\\u0063\":-1.5e+3,\"d\":null , \"e\":\"\\\\\" } ";
        let found = [("a", "{\"b\":[1,\"}\\\"\"]}"), ("c", "-1.5e+3"), ("d", "null"), ("e", "\"\\\\\"")];
        assert_eq!(members(text).unwrap(), found.map(|(key, value)| (key.to_owned(), value)));
        assert_eq!(members("{}").unwrap(), []);
    }

    #[test]
    fn enters_nested_objects() {
        let mut scanner = Scanner::new(r#"{"a":{"b":1,"c":2},"d":3}"#);
        scanner.open().unwrap();
        assert_eq!(scanner.key().unwrap().unwrap(), "a");
        scanner.open().unwrap();
        assert_eq!((scanner.key().unwrap().unwrap(), scanner.value().unwrap()), ("b".into(), "1"));
        assert_eq!((scanner.key().unwrap().unwrap(), scanner.value().unwrap()), ("c".into(), "2"));
        assert_eq!(scanner.key().unwrap(), None);
        assert_eq!((scanner.key().unwrap().unwrap(), scanner.value().unwrap()), ("d".into(), "3"));
        assert_eq!(scanner.key().unwrap(), None);
        scanner.end().unwrap();
    }

    #[test]
    fn parses_strings_as_a_json_parser_does() {
        for text in [r#""a""#, r#""""#, r#""\n\u0041""#, "\"\n\"", "\"a\u{7f}é\"", r#""\x""#, r#""a"#] {
            let parsed = Scanner::new(text).parse().ok();
            assert_eq!(parsed, serde_json::from_str(text).ok(), "{text}");
        }
        assert!(members("{\"\n\":1}").is_err());
    }

    #[test]
    fn reports_missing_tokens() {
        for text in [
            "",
            "{",
            "[]",
            "{,}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\":1 \"b\":2}",
            "{\"a\":[1}",
            "{\"a",
            "{} x",
        ] {
            assert!(members(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn finds_the_members_that_a_parser_finds(keys in prop::collection::vec(".*", 0..4), values in prop::collection::vec(".*", 4)) {
            let object: serde_json::Map<String, Value> =
                keys.into_iter().zip(values).map(|(key, value)| (key, serde_json::json!([{"a": value}, 1]))).collect();
            let text = Value::Object(object.clone()).to_string();
            let found: Vec<_> = members(&text).unwrap().into_iter().map(|(key, value)| (key, serde_json::from_str(value).unwrap())).collect();
            prop_assert_eq!(found, object.into_iter().collect::<Vec<(String, Value)>>());
        }

        #[test]
        fn ends_strings_where_a_parser_does(text in r#"[a"\\n]{0,80}"#, rest in "[a\"\\\\]{0,20}") {
            let quoted = Value::from(text).to_string();
            prop_assert_eq!(closing_quote(&format!("{quoted}{rest}").as_bytes()[1..]), Some(quoted.len() - 2));
        }

        #[test]
        fn terminates_for_any_text(text in "[{}\\[\\]\",:\\\\a1 ]{0,40}") {
            let _ = members(&text);
        }
    }
}
