//! Decodes base64 in the standard alphabet as Go's `encoding/base64` does, with Go's error messages.

/// Decodes a base64 text. Line breaks are skipped. Padding is required.
///
/// # Errors
/// If the text is invalid. The error is Go's message, which contains the byte offset of the first error.
pub fn decode(text: &str) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len() / 4 * 3);
    let mut at = 0;
    while let Some(length) =
        quantum(bytes, &mut at, &mut out).map_err(|at| format!("illegal base64 data at input byte {at}"))?
    {
        if length < 4 {
            break;
        }
    }
    Ok(out)
}

/// Decodes the next group of four base64 characters, and appends the bytes to `out`. The group begins at position `at`.
/// Afterwards, `at` is the position after the group.
///
/// Returns the number of characters in the group, without padding. Returns `None` at the end of the text.
///
/// # Errors
///
/// If a character is invalid or missing. The error is the offset for the error message.
fn quantum(bytes: &[u8], at: &mut usize, out: &mut Vec<u8>) -> Result<Option<usize>, usize> {
    let mut letters = [0u8; 4];
    let mut count = 0;
    while count < 4 {
        let Some(&byte) = bytes.get(*at) else { return if count == 0 { Ok(None) } else { Err(*at - count) } };
        *at += 1;
        match value(byte) {
            Some(value) => {
                letters[count] = value;
                count += 1;
            }
            None if is_line_end(byte) => {}
            None if byte == b'=' => {
                padding(bytes, at, count)?;
                break;
            }
            None => return Err(*at - 1),
        }
    }
    let [a, b, c, d] = letters;
    out.extend(&[a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d][..count.saturating_sub(1)]);
    Ok(Some(count))
}

/// Checks the rest of a base64 text after the first `=`. `at` is the position after this `=`. `count` is the number of
/// characters that precede the `=` in the same group of four. If a character is invalid, returns its offset as the
/// error.
fn padding(bytes: &[u8], at: &mut usize, count: usize) -> Result<(), usize> {
    let skip = |at: &mut usize| {
        while bytes.get(*at).is_some_and(|byte| is_line_end(*byte)) {
            *at += 1;
        }
    };
    if count < 2 {
        return Err(*at - 1);
    }
    if count == 2 {
        skip(at);
        match bytes.get(*at) {
            None => return Err(bytes.len()),
            Some(b'=') => *at += 1,
            Some(_) => return Err(*at - 1),
        }
    }
    skip(at);
    if *at < bytes.len() { Err(*at) } else { Ok(()) }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

fn value(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}
