//! Where the brackets of a JSON text stand, those in its strings left out.
//!
//! A block of bytes is looked at as a whole, and what is told of each byte becomes a bit: a processor does that many bytes at
//! a time, and has nothing to guess. To follow one string after another it has to guess where each of them ends.

use memchr::memchr2;

/// The bytes that are looked at together: as many as a word has bits.
const BLOCK: usize = u64::BITS as usize;
/// What fills up the last block.
const BLANKS: [u8; BLOCK] = [b' '; BLOCK];

/// A brace or square bracket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bracket {
    /// Its byte, counted from where the text begins.
    pub at: usize,
    /// Whether it opens an object or list.
    pub opens: bool,
}

/// The brackets of a text, the first one first. What begins within a string cannot be told from what does not.
#[derive(Debug)]
pub(super) struct Brackets<'a> {
    block: [u8; BLOCK],
    /// Where the block begins.
    start: usize,
    rest: &'a [u8],
    /// The brackets of the block that are still to be told, a bit for each.
    found: u64,
    /// All bits where the next block begins within a string, none where it does not.
    quoted: u64,
    /// Whether a backslash stands before the next block.
    escaped: bool,
    /// Whether all of the block is within a string, of which there may be much more.
    is_text: bool,
}

impl<'a> Brackets<'a> {
    /// Those of `text`, which begins outside of a string.
    pub(super) fn of(text: &'a [u8]) -> Self {
        let mut brackets =
            Self { block: BLANKS, start: 0, rest: text, found: 0, quoted: 0, escaped: false, is_text: false };
        brackets.look();
        brackets
    }

    /// Looks at the bytes ahead.
    fn look(&mut self) {
        match self.rest.split_first_chunk() {
            Some((block, rest)) => (self.block, self.rest) = (*block, rest),
            None => {
                self.block = BLANKS;
                self.block.iter_mut().zip(self.rest).for_each(|(to, from)| *to = *from);
                self.rest = &[];
            }
        }
        let mut quotes = bits(&self.block, |byte| byte == b'"');
        if self.escaped || self.block.iter().fold(false, |any, byte| any | (*byte == b'\\')) {
            quotes &= !self.escapes();
        }
        let quoted = odd(quotes) ^ self.quoted;
        self.quoted = if quoted >> (BLOCK - 1) == 0 { 0 } else { u64::MAX };
        self.is_text = quoted == u64::MAX && !self.escaped;
        // The braces and the square brackets differ in one bit.
        self.found = bits(&self.block, |byte| matches!(byte | 0x20, b'{' | b'}')) & !quoted;
    }

    /// Passes over the blocks ahead that are within the same string. A long text is a part of many an object.
    #[cold]
    fn pass_over(&mut self) {
        let text = memchr2(b'"', b'\\', self.rest).unwrap_or(self.rest.len()) / BLOCK * BLOCK;
        self.rest = self.rest.get(text..).unwrap_or_default();
        self.start += text;
    }

    /// The bytes of the block that stand behind a backslash which is none of them itself.
    #[cold]
    fn escapes(&mut self) -> u64 {
        let mut backslashes = bits(&self.block, |byte| byte == b'\\');
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
                self.pass_over();
            }
            self.look();
        }
        let within = self.found.trailing_zeros() as usize;
        self.found &= self.found - 1;
        // The opening ones have this bit, and the closing ones do not.
        let opens = self.block.get(within).is_some_and(|byte| byte & 2 != 0);
        Some(Bracket { at: self.start + within, opens })
    }
}

/// A bit for each byte of a block that `is` tells of, the lowest one for the first.
#[inline]
fn bits(block: &[u8; BLOCK], is: impl Fn(u8) -> bool) -> u64 {
    // Each byte is marked with the bit of the eight that it is in. The eights laid upon one another have the bits in columns.
    let mut marks = [0_u8; BLOCK];
    for (at, (mark, byte)) in marks.iter_mut().zip(block).enumerate() {
        *mark = if is(*byte) { 1 << (at / 8) } else { 0 };
    }
    let eights = marks.as_chunks().0.iter().map(|eight| u64::from_le_bytes(*eight));
    turned(eights.fold(0, |columns, eight| columns | eight))
}

/// A square of eight times eight bits with its rows made columns (Warren, Hacker's Delight, 7-3).
fn turned(mut square: u64) -> u64 {
    for (distance, mask) in [(7, 0x00AA_00AA_00AA_00AA), (14, 0x0000_CCCC_0000_CCCC), (28, 0x0000_0000_F0F0_F0F0)] {
        let moved = (square ^ (square >> distance)) & mask;
        square ^= moved ^ (moved << distance);
    }
    square
}

/// The bits up to which, themselves included, an odd number of `bits` are set.
fn odd(mut bits: u64) -> u64 {
    for distance in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << distance;
    }
    bits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One byte after another.
    fn plainly(text: &str) -> Vec<Bracket> {
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
        fn they_are_those_that_are_found_byte_by_byte(text in r#"([{}\[\]"\\,:]|[\[\]\{\}"]{1,9}|\\{1,9}|.{0,40}){0,60}"#) {
            prop_assert_eq!(Brackets::of(text.as_bytes()).collect::<Vec<_>>(), plainly(&text));
        }
    }

    #[test]
    fn a_backslash_at_the_end_of_a_block_counts_in_the_next() {
        for before in BLOCK - 4..BLOCK + 4 {
            for backslashes in 0..6 {
                let text = ["[\"", &"x".repeat(before), &"\\".repeat(backslashes), "\"]\"]"].concat();
                assert_eq!(Brackets::of(text.as_bytes()).collect::<Vec<_>>(), plainly(&text), "{text}");
            }
        }
    }

    #[test]
    fn a_long_text_is_passed_over() {
        for length in (0..4 * BLOCK).chain([1_000, 10_000]) {
            for end in ["\"]}", "\\\"]\"]", "", "\\", "]"] {
                let text = ["[\"", &"[".repeat(length), end].concat();
                assert_eq!(Brackets::of(text.as_bytes()).collect::<Vec<_>>(), plainly(&text), "{length} {end}");
            }
        }
    }

    #[test]
    fn nothing_has_no_brackets() {
        assert_eq!(Brackets::of(b"").next(), None);
    }
}
