//! Quotes strings as Go does.
//!
//! Source: `strconv.Quote` and related functions. Rust's Unicode tables decide which characters are printable. These
//! tables are newer than Go's.

/// Quotes a text as the verb `%q` of Go's `fmt` does: `"a\"b"`.
pub fn quote(text: &str) -> String {
    quote_with(text, '"', false)
}

/// Quotes a text as the verb `%+q` of Go's `fmt` does. The result is ASCII.
pub(super) fn quote_ascii(text: &str) -> String {
    quote_with(text, '"', true)
}

/// Quotes a text as Go does, with the quotation mark `mark`. If `is_ascii` is true, escapes all characters that are not
/// ASCII.
pub(super) fn quote_with(text: &str, mark: char, is_ascii: bool) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push(mark);
    for c in text.chars() {
        match c {
            _ if c == mark => quoted.extend(['\\', c]),
            _ if is_ascii && !c.is_ascii() => push_escaped(&mut quoted, c),
            '\\' => quoted.push_str("\\\\"),
            _ if is_printable(c) => quoted.push(c),
            _ => push_escaped(&mut quoted, c),
        }
    }
    quoted.push(mark);
    quoted
}

fn push_escaped(out: &mut String, c: char) {
    match c {
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{b}' => out.push_str("\\v"),
        _ if c < ' ' || c == '\u{7f}' => out.push_str(&format!("\\x{:02x}", u32::from(c))),
        _ if c <= '\u{ffff}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
        _ => out.push_str(&format!("\\U{:08x}", u32::from(c))),
    }
}

/// Returns whether Go prints a character unescaped: letters, marks, numbers, punctuation, symbols and the ASCII space.
pub(super) fn is_printable(c: char) -> bool {
    // Rust escapes a combining mark only at the start of a text.
    let text = String::from_iter(['a', c]);
    matches!(c, '"' | '\'' | '\\') || text.escape_debug().nth(1) == Some(c)
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn quotes_as_go_does() {
        assert_eq!(quote("a\"b\\'\u{7}\n\u{1}\u{7f}"), r#""a\"b\\'\a\n\x01\x7f""#);
        assert_eq!(quote("é\u{301}世\u{a0}\u{ad}\u{2028}\u{e0001}"), "\"é\u{301}世\\u00a0\\u00ad\\u2028\\U000e0001\"");
    }
}
