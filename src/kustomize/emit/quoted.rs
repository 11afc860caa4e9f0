//! Escapes characters in double-quoted YAML strings.

use std::fmt::Write;

use super::style::{is_break, is_printable};

/// The byte order mark U+FEFF.
const BOM: char = '\u{feff}';

/// Returns whether go-yaml v2 escapes every character of a double-quoted text. It does so if the text begins with a
/// byte order mark.
pub(super) fn escapes_all(text: &str) -> bool {
    text.starts_with(BOM)
}

/// Returns whether go-yaml v2 escapes a character in a double-quoted string.
pub(super) fn is_escaped(char: char) -> bool {
    !is_printable(char) || is_break(char) || matches!(char, '"' | '\\')
}

/// Appends the escape of a character, such as `\n`, and returns the length of the escape in characters.
///
/// Source: `yaml_emitter_write_double_quoted_scalar` in go-yaml v2.
pub(super) fn escape(char: char, out: &mut String) -> usize {
    let start = out.len();
    out.push('\\');
    match short(char) {
        Some(letter) => out.push(letter),
        // writing into a String does not fail
        None => drop(match u32::from(char) {
            code @ ..=0xff => write!(out, "x{code:02X}"),
            code @ ..=0xffff => write!(out, "u{code:04X}"),
            code => write!(out, "U{code:08X}"),
        }),
    }
    out.len() - start
}

fn short(char: char) -> Option<char> {
    Some(match char {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ => return None,
    })
}
