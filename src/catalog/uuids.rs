//! Packs each UUID in a text into 17 bytes, so that the text compresses better.
//!
//! Objects contain UUIDs of themselves, of their owners and of jobs. The random digits of UUIDs compress badly. They
//! would take a third of the size of a compressed Landscaper Installation. So a UUID of 36 bytes is written as [`MARK`]
//! followed by 16 bytes.

use memchr::{memchr, memchr_iter};

/// The byte before a packed UUID. It does not occur in UTF-8.
const MARK: u8 = 0xff;
const BYTES: usize = 16;
const DIGITS: usize = 36;
/// The positions of the hyphens in a UUID.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];
/// The positions of the pairs of digits in a UUID. Each pair is one byte.
const PAIRS: [usize; BYTES] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
/// The hexadecimal digits, in the order of their values.
const DIGITS_IN_ORDER: &[u8; 16] = b"0123456789abcdef";

/// Encodes `text` as bytes, and appends them to `packed`. Each UUID becomes 17 bytes instead of 36. All other bytes
/// stay the same.
pub(super) fn pack(text: &str, packed: &mut Vec<u8>) {
    let (bytes, mut from) = (text.as_bytes(), 0);
    packed.reserve(bytes.len());
    for hyphen in memchr_iter(b'-', bytes) {
        let Some(start) = hyphen.checked_sub(HYPHENS[0]).filter(|start| *start >= from) else { continue };
        let Some(uuid) = bytes.get(start..start + DIGITS).and_then(parse) else { continue };
        packed.extend(bytes.get(from..start).unwrap_or_default());
        packed.push(MARK);
        packed.extend(uuid);
        from = start + DIGITS;
    }
    packed.extend(bytes.get(from..).unwrap_or_default());
}

/// Restores a text from its packed bytes, in which each UUID takes 17 bytes. `length` is the length of the restored
/// text, in bytes.
pub(super) fn unpack(packed: &[u8], length: usize) -> Vec<u8> {
    let (mut text, mut rest) = (Vec::with_capacity(length), packed);
    while let Some(mark) = memchr(MARK, rest) {
        let (before, marked) = rest.split_at(mark);
        text.extend(before);
        let Some((uuid, behind)) = marked.get(1..).and_then(<[u8]>::split_first_chunk) else { break };
        write(uuid, &mut text);
        rest = behind;
    }
    text.extend(rest);
    text
}

/// Parses a UUID in lower case with hyphens, as the API server writes it; `None` for other texts.
fn parse(text: &[u8]) -> Option<[u8; BYTES]> {
    // Most hyphens are not in a UUID, and in most of these texts, there is no hyphen at the next position.
    if HYPHENS.iter().any(|at| text.get(*at) != Some(&b'-')) {
        return None;
    }
    let value = |at: usize| text.get(at).and_then(|byte| VALUES.get(usize::from(*byte))).copied().unwrap_or(NO_DIGIT);
    let (mut uuid, mut all) = ([0; BYTES], 0);
    for (byte, at) in uuid.iter_mut().zip(PAIRS) {
        let [high, low] = [value(at), value(at + 1)];
        *byte = high << 4 | low;
        all |= high | low;
    }
    (all < 16).then_some(uuid)
}

/// The value of a byte that is not a hexadecimal digit in lower case.
const NO_DIGIT: u8 = 0xf0;
/// The value of each byte as a hexadecimal digit in lower case.
const VALUES: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 16 {
        values[DIGITS_IN_ORDER[value] as usize] = value as u8;
        value += 1;
    }
    values
};

fn write(uuid: &[u8; BYTES], text: &mut Vec<u8>) {
    let digit = |half: u8| if half < 10 { b'0' + half } else { b'a' + half - 10 };
    for (at, byte) in uuid.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push(b'-');
        }
        text.extend([digit(byte >> 4), digit(byte & 15)]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round_trip(text: &str) -> usize {
        let mut packed = Vec::new();
        pack(text, &mut packed);
        assert_eq!(String::from_utf8(unpack(&packed, text.len())).unwrap(), text);
        packed.len()
    }

    #[test]
    fn uuids_are_packed_wherever_they_are() {
        let uuid = "0aF7c3de-1111-4fff-8000-ffffffffffff".to_lowercase();
        assert_eq!(round_trip(&uuid), 17);
        assert_eq!(round_trip(&format!("{uuid}{uuid}")), 34);
        assert_eq!(round_trip(&format!("a-{uuid}-a-b")), 17 + 6);
        for other in [uuid.to_uppercase(), uuid.replace('7', "g"), uuid[..35].to_owned(), uuid.replacen('-', "0", 2)] {
            assert_eq!(round_trip(&other), other.len(), "{other}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_unpacked_again(text in ".{0,60}|([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{11,13}-?){0,3}") {
            round_trip(&text);
        }
    }
}
