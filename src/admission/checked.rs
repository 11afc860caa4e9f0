//! Checks that a JSON value is valid, without parsing it.
//!
//! Most of an object is not stored in the catalog, but an invalid object must still be reported. So its other fields
//! are checked. The code searches 16 bytes of a string at a time for quotes, backslashes and control characters.

use wide::u8x16;

/// Number of bytes of a string that are searched at a time.
const LANES: usize = 16;
/// Length, in bytes, above which a number could be too large for 64-bit floating point without an exponent.
const MAX_PLAIN_DIGITS: usize = 300;

/// A valid JSON value at the start of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Checked {
    /// The length of the value in bytes.
    pub(super) length: usize,
    /// The maximum depth to which objects and lists are nested in the value. 0 if the value is neither of them.
    pub(super) depth: usize,
    /// Whether there is white space between the tokens of the value.
    pub(super) has_blanks: bool,
}

/// Checks the JSON value at the start of `text`. `None` if the value is not valid JSON, or if white space precedes it.
/// Ignores the text after the value. The value may be nested to any depth.
///
/// Except for the depth, accepts the same values as [`json::parse`](super::json::parse).
pub(super) fn check(text: &str) -> Option<Checked> {
    let (bytes, mut at, mut nesting, mut has_blanks) = (text.as_bytes(), 0, Nesting::default(), false);
    loop {
        let first = *bytes.get(at)?;
        if matches!(first, b'{' | b'[') {
            let is_object = first == b'{';
            nesting.enter(is_object);
            at = after_blanks(bytes, at + 1, &mut has_blanks);
            if bytes.get(at) != Some(&closing(is_object)) {
                if is_object {
                    at = after_key(bytes, at, &mut has_blanks)?;
                }
                continue;
            }
        } else {
            at = after_scalar(text, at)?;
        }
        loop {
            let Some(is_in_object) = nesting.is_in_object() else {
                return Some(Checked { length: at, depth: nesting.deepest, has_blanks });
            };
            at = after_blanks(bytes, at, &mut has_blanks);
            match *bytes.get(at)? {
                b',' => {
                    at = after_blanks(bytes, at + 1, &mut has_blanks);
                    if is_in_object {
                        at = after_key(bytes, at, &mut has_blanks)?;
                    }
                    break;
                }
                byte if byte == closing(is_in_object) => at += 1,
                _ => return None,
            }
            nesting.leave();
        }
    }
}

/// Returns the bracket that closes an object or a list.
fn closing(is_object: bool) -> u8 {
    if is_object { b'}' } else { b']' }
}

/// The objects and lists around a position in a JSON text.
#[derive(Default)]
struct Nesting {
    depth: usize,
    /// The maximum of `depth` so far.
    deepest: usize,
    /// One bit for each of the innermost objects and lists, the innermost in the lowest bit. It is set for an object.
    innermost: u64,
    /// The bits of the objects and lists further out, 64 in each number.
    outer: Vec<u64>,
}

impl Nesting {
    fn enter(&mut self, is_object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.outer.push(self.innermost);
        }
        self.innermost = self.innermost << 1 | u64::from(is_object);
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
    }

    fn leave(&mut self) {
        self.innermost >>= 1;
        self.depth -= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.innermost = self.outer.pop().unwrap_or_default();
        }
    }

    /// Returns whether the position is in an object, and not in a list. `None` outside the value.
    fn is_in_object(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.innermost & 1 == 1)
    }
}

/// Returns the position after the white space at `at`. Sets `has_blanks` if there is any.
fn after_blanks(bytes: &[u8], mut at: usize, has_blanks: &mut bool) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
        *has_blanks = true;
        at += 1;
    }
    at
}

/// Returns the position of the value of a member whose key begins at `at`. Sets `has_blanks` if there is white space
/// around the colon.
fn after_key(bytes: &[u8], at: usize, has_blanks: &mut bool) -> Option<usize> {
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let at = after_blanks(bytes, after_string(bytes, at)?, has_blanks);
    (bytes.get(at) == Some(&b':')).then(|| after_blanks(bytes, at + 1, has_blanks))
}

/// Returns the position after the string, number or word that begins at `at`.
fn after_scalar(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let word = |word: &str| bytes.get(at..)?.starts_with(word.as_bytes()).then_some(at + word.len());
    match bytes.get(at)? {
        b'"' => after_string(bytes, at),
        b't' => word("true"),
        b'f' => word("false"),
        b'n' => word("null"),
        _ => after_number(text, at),
    }
}

/// Returns the content of the string that begins with an opening quote before `text`. `None` if the string contains
/// escapes or control characters, or does not end.
#[inline]
pub(super) fn plain_string(text: &str) -> Option<&str> {
    let end = special(text.as_bytes())?;
    text.get(..end).filter(|_| text.as_bytes().get(end) == Some(&b'"'))
}

/// Returns the position after the string whose opening quote is at `at`.
fn after_string(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at += special(bytes.get(at..)?)?;
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at = after_escape(bytes, at)?,
            _ => return None,
        }
    }
}

/// Returns the position of the first quote, backslash or control character.
#[inline]
fn special(bytes: &[u8]) -> Option<usize> {
    let (blocks, rest) = bytes.as_chunks::<LANES>();
    for (number, block) in blocks.iter().enumerate() {
        let block = u8x16::new(*block);
        let is_special = block.simd_eq(b'"') | block.simd_eq(b'\\') | block.simd_lt(b' ');
        let found = is_special.to_bitmask();
        if found != 0 {
            return Some(number * LANES + found.trailing_zeros() as usize);
        }
    }
    let found = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..b' '))?;
    Some(bytes.len() - rest.len() + found)
}

/// Returns the position after the escape whose backslash is at `at`.
fn after_escape(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at + 1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 2),
        b'u' => bytes.get(at + 2..at + 6)?.iter().all(u8::is_ascii_hexdigit).then_some(at + 6),
        _ => None,
    }
}

/// Returns the position after the number that begins at `start`. Numbers that a 64-bit floating point number cannot
/// represent are invalid, as in serde_json.
fn after_number(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let after_sign = start + usize::from(bytes.get(start) == Some(&b'-'));
    let mut at = match bytes.get(after_sign)? {
        b'0' => after_sign + 1,
        _ => after_digits(bytes, after_sign)?,
    };
    if bytes.get(at) == Some(&b'.') {
        at = after_digits(bytes, at + 1)?;
    }
    let has_exponent = matches!(bytes.get(at), Some(b'e' | b'E'));
    if has_exponent {
        let has_sign = matches!(bytes.get(at + 1), Some(b'+' | b'-'));
        at = after_digits(bytes, at + 1 + usize::from(has_sign))?;
    }
    let is_finite = || text.get(start..at).and_then(|number| number.parse().ok()).is_some_and(f64::is_finite);
    (!has_exponent && at - start <= MAX_PLAIN_DIGITS || is_finite()).then_some(at)
}

/// Returns the position after the digits at `at`; `None` if there is no digit.
fn after_digits(bytes: &[u8], at: usize) -> Option<usize> {
    let digits = bytes.get(at..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (digits > 0).then_some(at + digits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::admission::{json, scan};

    fn length(text: &str) -> Option<usize> {
        check(text).map(|checked| checked.length)
    }

    #[test]
    fn accepts_what_a_parser_accepts() {
        let string = |inner: &str| format!("\"{inner}\"");
        let long = "x".repeat(40);
        let strings =
            ["", "a", &long, "\\n", "\\u00e9", "\\ud800", "\\u12", "\\x", "\n", "\u{7f}", "é", "\u{1f}", "\\"];
        let scalars = ["0", "-0", "01", "-", "1.", ".5", "1.5e+3", "1e", "1E-2", "+1", "true", "nul", "fals", "null"];
        let nested = [
            "{}",
            "[]",
            "{ }",
            "[ ]",
            "[1,2]",
            "[1,]",
            "[,1]",
            "{\"a\":1}",
            "{\"a\":1,}",
            "{,}",
            "{\"a\"}",
            "{\"a\":}",
            "{1:2}",
            "[}",
            "{]",
            "[1",
            "{\"a\":[{}, {\"b\": [ ]}] }",
            "[1 2]",
            "{\"a\":1 \"b\":2}",
            "",
        ];
        let strings = strings.map(string);
        for text in strings.iter().map(String::as_str).chain(scalars).chain(nested) {
            let listed = format!("[{text}]");
            assert_eq!(length(&listed) == Some(listed.len()), json::parse(&listed).is_ok(), "{listed}");
        }
    }

    #[test]
    fn depth_and_blanks_are_those_of_the_value() {
        for (text, depth, has_blanks) in [
            ("1 ", 0, false),
            ("[] ", 1, false),
            ("[ ]", 1, true),
            ("[{},[]]", 2, false),
            ("[[1],2]", 2, false),
            (r#"{"a b":1}"#, 1, false),
            (r#"{"a" :1}"#, 1, true),
            (r#"{"a":1 }"#, 1, true),
            ("[1,\n2]", 1, true),
        ] {
            let checked = check(text).unwrap();
            assert_eq!((checked.depth, checked.has_blanks), (depth, has_blanks), "{text}");
        }
    }

    #[test]
    fn plain_strings_end_at_their_quote() {
        for (text, plain) in [("a\"b\"", Some("a")), ("\"", Some("")), ("a\\\"", None), ("a\n\"", None), ("a", None)] {
            assert_eq!(plain_string(text), plain, "{text}");
        }
    }

    #[test]
    fn numbers_beyond_floating_point_are_invalid() {
        let digits = "9".repeat(400);
        for (text, is_valid) in
            [("1e999", false), ("1e300", true), ("-1E400", false), ("1e-999", true), (&digits, false)]
        {
            assert_eq!(json::parse(text).is_ok(), is_valid, "{text}");
            assert_eq!(length(text).is_some(), is_valid, "{text}");
        }
    }

    #[test]
    fn a_value_may_be_nested_to_any_depth() {
        for depth in [1, 63, 64, 65, 128, 129, 10_000] {
            let text = "[{\"a\":".repeat(depth) + "1" + &"}]".repeat(depth);
            assert_eq!(check(&text), Some(Checked { length: text.len(), depth: 2 * depth, has_blanks: false }));
            assert_eq!(length(&text[..text.len() - 1]), None);
            assert_eq!(length(&text.replacen("}]", "]}", 1)), None);
        }
    }

    proptest! {
        #[test]
        fn accepts_any_value(value in prop::collection::vec((".*", any::<f64>(), any::<i64>()), 0..5)) {
            let value = serde_json::json!({"a": value, "b": [value.len(), null, true]});
            for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                let has_blanks = text.len() > value.to_string().len();
                prop_assert_eq!(check(&text), Some(Checked { length: text.len(), depth: scan::depth(&text), has_blanks }));
            }
        }

        #[test]
        fn agrees_with_a_parser(text in r#"[{}\[\],:"a\\ u0-9.e+\-tn]{0,12}|([{\[]{0,3}("a":|1|"b"|[,\]}])){0,12}"#) {
            let listed = format!("[{text}]");
            prop_assert_eq!(length(&listed) == Some(listed.len()), json::parse(&listed).is_ok(), "{}", listed);
        }
    }
}
