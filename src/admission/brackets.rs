//! Finds the brackets of a JSON text, except those inside strings.
//!
//! The code reads 64 bytes at a time, and computes a 64-bit mask that has one bit for each byte. A bit is set if the
//! byte is a bracket outside a string. The masks are computed almost without branches. Code with a branch at each quote
//! would be slower, because the CPU cannot predict where strings end.

use memchr::memchr2;
use wide::u8x16;

/// Number of bytes that the search for brackets reads at a time. It equals the number of bits in a mask, because a mask
/// has one bit for each byte.
const BLOCK: usize = u64::BITS as usize;
/// Spaces that pad the last block of a text.
const BLANKS: [u8; BLOCK] = [b' '; BLOCK];

/// A brace or square bracket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bracket {
    /// Offset of the bracket in the text, in bytes.
    pub at: usize,
    /// `true` for `{` and `[`, `false` for `}` and `]`.
    pub opens: bool,
}

/// An iterator over the brackets of a JSON text, in order. Omits brackets inside strings. The text must begin outside a
/// string.
#[derive(Debug)]
pub(super) struct Brackets<'a> {
    block: [u8; BLOCK],
    /// Byte offset in the JSON text of the 64-byte block that is searched now.
    start: usize,
    rest: &'a [u8],
    /// Bit mask of brackets in the current block, with one bit for each byte. A bit is set if the byte is a bracket
    /// that the iterator has not returned yet.
    found: u64,
    /// Whether the current block of 64 bytes ends inside a JSON string: `u64::MAX` if it does, otherwise 0. The value
    /// is a bit mask, so that it can be combined with the mask of the next block.
    quoted: u64,
    /// Whether the last byte of the block is a backslash that escapes the first byte of the next block.
    escaped: bool,
    /// Whether the current block of 64 bytes is entirely inside one JSON string. If so, the iterator uses `memchr` to
    /// skip the following blocks up to the next quote or backslash.
    is_text: bool,
}

impl<'a> Brackets<'a> {
    /// Returns an iterator over the brackets of `text`.
    pub(super) fn of(text: &'a [u8]) -> Self {
        let mut brackets =
            Self { block: BLANKS, start: 0, rest: text, found: 0, quoted: 0, escaped: false, is_text: false };
        brackets.scan_block();
        brackets
    }

    /// Loads the next 64 bytes of the text into `block`, and finds the brackets in them.
    fn scan_block(&mut self) {
        match self.rest.split_first_chunk() {
            Some((block, rest)) => (self.block, self.rest) = (*block, rest),
            None => {
                self.block = BLANKS;
                self.block.iter_mut().zip(self.rest).for_each(|(to, from)| *to = *from);
                self.rest = &[];
            }
        }
        let mut quotes = bits(&self.block, 0, b'"');
        let backslashes = bits(&self.block, 0, b'\\');
        if self.escaped || backslashes != 0 {
            quotes &= !self.escapes(backslashes);
        }
        let quoted = prefix_xor(quotes) ^ self.quoted;
        self.quoted = if quoted >> (BLOCK - 1) == 0 { 0 } else { u64::MAX };
        self.is_text = quoted == u64::MAX && !self.escaped;
        // `{`/`[` and `}`/`]` differ only in the bit 0x20.
        self.found = (bits(&self.block, 0x20, b'{') | bits(&self.block, 0x20, b'}')) & !quoted;
    }

    /// Skips blocks of 64 bytes that contain neither a quote nor a backslash. Such blocks are entirely inside the
    /// current string, so their brackets do not count.
    #[cold]
    fn skip_string_blocks(&mut self) {
        let text = memchr2(b'"', b'\\', self.rest).unwrap_or(self.rest.len()) / BLOCK * BLOCK;
        self.rest = self.rest.get(text..).unwrap_or_default();
        self.start += text;
    }

    /// Returns a bit mask of the escaped bytes in the current block. A byte is escaped if it follows a backslash that
    /// is not escaped itself. `backslashes` is the bit mask of all backslashes in the block.
    #[cold]
    fn escapes(&mut self, mut backslashes: u64) -> u64 {
        let mut escapes = u64::from(std::mem::take(&mut self.escaped));
        while backslashes != 0 {
            let bit = 1 << backslashes.trailing_zeros();
            backslashes ^= bit;
            if escapes & bit == 0 {
                escapes |= bit << 1;
                self.escaped = bit.leading_zeros() == 0;
            }
        }
        escapes
    }
}

impl Iterator for Brackets<'_> {
    type Item = Bracket;

    #[inline]
    fn next(&mut self) -> Option<Bracket> {
        while self.found == 0 {
            if self.rest.is_empty() {
                return None;
            }
            self.start += BLOCK;
            if self.is_text {
                self.skip_string_blocks();
            }
            self.scan_block();
        }
        let within = self.found.trailing_zeros() as usize;
        self.found &= self.found - 1;
        // Opening brackets have the bit 0x02 set; closing brackets do not.
        let opens = self.block.get(within).is_some_and(|byte| byte & 2 != 0);
        Some(Bracket { at: self.start + within, opens })
    }
}

/// Returns a bit mask of the bytes in `block` that equal `wanted` after an OR with `mask`. The lowest bit belongs to
/// the first byte.
#[inline]
fn bits(block: &[u8; BLOCK], mask: u8, wanted: u8) -> u64 {
    let (mask, wanted) = (u8x16::splat(mask), u8x16::splat(wanted));
    let (lanes, _) = block.as_chunks();
    lanes.iter().rev().fold(0, |found, bytes| {
        let equal = (u8x16::new(*bytes) | mask).simd_eq(wanted).to_bitmask();
        found << 16 | u64::from(equal & u32::from(u16::MAX))
    })
}

/// Returns the prefix XOR of `bits`. Bit n of the result is set if an odd number of the bits 0 to n is set in `bits`.
fn prefix_xor(mut bits: u64) -> u64 {
    for distance in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << distance;
    }
    bits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Finds the brackets in a text byte by byte. The test compares this simple implementation with [`Brackets`].
    fn bracket_by_bracket(text: &str) -> Vec<Bracket> {
        let (mut quoted, mut escaped, mut found) = (false, false, Vec::new());
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                b'"' if !escaped => quoted = !quoted,
                b'{' | b'[' if !quoted => found.push(Bracket { at, opens: true }),
                b'}' | b']' if !quoted => found.push(Bracket { at, opens: false }),
                _ => {}
            }
            escaped = byte == b'\\' && !escaped;
        }
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn agrees_with_a_byte_by_byte_scan(text in r#"([{}\[\]"\\,:]|[\[\]\{\}"]{1,9}|\\{1,9}|.{0,40}){0,60}"#) {
            prop_assert_eq!(Brackets::of(text.as_bytes()).collect::<Vec<_>>(), bracket_by_bracket(&text));
        }
    }

    #[test]
    fn carries_a_backslash_into_the_next_block() {
        for before in BLOCK - 4..BLOCK + 4 {
            for backslashes in 0..6 {
                let text = ["[\"", &"x".repeat(before), &"\\".repeat(backslashes), "\"]\"]"].concat();
                assert_eq!(Brackets::of(text.as_bytes()).collect::<Vec<_>>(), bracket_by_bracket(&text), "{text}");
            }
        }
    }

    #[test]
    fn skips_long_strings() {
        for length in (0..4 * BLOCK).chain([1_000, 10_000]) {
            for end in ["\"]}", "\\\"]\"]", "", "\\", "]"] {
                let text = ["[\"", &"[".repeat(length), end].concat();
                assert_eq!(
                    Brackets::of(text.as_bytes()).collect::<Vec<_>>(),
                    bracket_by_bracket(&text),
                    "{length} {end}"
                );
            }
        }
    }

    #[test]
    fn finds_no_brackets_in_an_empty_text() {
        assert_eq!(Brackets::of(b"").next(), None);
    }
}
