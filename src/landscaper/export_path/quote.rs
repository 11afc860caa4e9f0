//! Unquotes strings in the same way as `UnquoteExtend` of client-go and `strconv.UnquoteChar` of Go.

/// Removes the quotes around `text`, and resolves the escape sequences in it; `None` if `text` is not a valid quoted
/// string in client-go.
pub(super) fn unquote(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(first) = rest.chars().next() {
        rest = &rest[first.len_utf8()..];
        match first {
            c if c == quote => return None,
            '\\' => rest = escape(rest, quote, &mut bytes)?,
            c => push(c, &mut bytes),
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Resolves the escape sequence at the start of `text`, and appends the result to `bytes`. `text` starts after the
/// backslash of the escape sequence, and `quote` is the quote character of the string. Returns the text after the
/// escape sequence; `None` if the escape sequence is invalid in Go.
fn escape<'t>(text: &'t str, quote: char, bytes: &mut Vec<u8>) -> Option<&'t str> {
    let kind = text.chars().next()?;
    let rest = &text[kind.len_utf8()..];
    let byte = match kind {
        'a' => 0x07,
        'b' => 0x08,
        'f' => 0x0c,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 0x0b,
        '\\' => b'\\',
        '\'' | '"' if kind == quote => u8::try_from(kind).ok()?,
        'x' => {
            bytes.push(u8::try_from(number(rest.get(..2)?, 16)?).ok()?);
            return rest.get(2..);
        }
        '0'..='7' => {
            bytes.push(u8::try_from(number(text.get(..3)?, 8)?).ok()?);
            return text.get(3..);
        }
        'u' | 'U' => {
            let digits = if kind == 'u' { 4 } else { 8 };
            push(char::from_u32(number(rest.get(..digits)?, 16)?)?, bytes);
            return rest.get(digits..);
        }
        _ => return None,
    };
    bytes.push(byte);
    Some(rest)
}

fn number(digits: &str, radix: u32) -> Option<u32> {
    // from_str_radix would accept a sign
    if digits.chars().all(|c| c.is_digit(radix)) { u32::from_str_radix(digits, radix).ok() } else { None }
}

fn push(c: char, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}
