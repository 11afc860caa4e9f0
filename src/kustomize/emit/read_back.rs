//! Computes the string that results when kustomize writes a string as JSON, and then parses this JSON as YAML.
//! kustomize does this with each object before it prints the object.
//!
//! Go's JSON encoder leaves two kinds of characters unescaped that matter in YAML 1.1: U+0085, which is a line break,
//! and control characters from U+007F on, which YAML rejects.

use std::borrow::Cow;

use super::error::{MAX_KEY, Problem};

/// The next-line character, a line break in YAML 1.1.
const BREAK: char = '\u{85}';

/// Returns the string that results when Go writes `text` as JSON, and a YAML parser reads this JSON. YAML folds the
/// line breaks U+0085, and removes the spaces around them. A single line break becomes a space. A sequence of `n` line
/// breaks becomes `n - 1` line feeds. Returns an error if the text contains a character that YAML does not allow.
pub(super) fn text(text: &str) -> Result<Cow<'_, str>, Problem> {
    if text.bytes().all(|byte| byte < 0x7f) {
        return Ok(Cow::Borrowed(text));
    }
    if let Some(control) = text.chars().find(|char| is_refused(*char)) {
        return Err(Problem::Control(control));
    }
    Ok(if text.contains(BREAK) { Cow::Owned(folded(text)) } else { Cow::Borrowed(text) })
}

/// Checks a mapping key that Go writes as JSON and a YAML parser reads. Returns an error if the parser rejects the key.
/// The key must not contain line breaks or control characters that Go's JSON encoder leaves unescaped. Its JSON text
/// must have at most [`MAX_KEY`] characters.
pub(super) fn key(key: &str) -> Result<(), Problem> {
    let quoted = text(key)?;
    if matches!(quoted, Cow::Owned(_)) {
        return Err(Problem::KeyWithBreak);
    }
    // A JSON escape has at most six characters, so most keys need no counting.
    let is_long = key.len() * "\\u0000".len() + 2 > MAX_KEY && json_length(key) > MAX_KEY;
    if is_long { Err(Problem::LongKey) } else { Ok(()) }
}

/// Returns whether YAML forbids a character.
///
/// Source: `yaml_parser_update_buffer` in go-yaml v2.
fn is_refused(char: char) -> bool {
    matches!(char, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}')
}

/// Replaces line breaks U+0085 as the YAML parser does in a quoted string. One line break becomes a space. Of several
/// line breaks, all but the first become `\n`.
///
/// Source: `yaml_parser_scan_flow_scalar` in go-yaml v2.
fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find([' ', BREAK]) {
        let (before, from) = rest.split_at(start);
        let end = from.find(|char| char != ' ' && char != BREAK).unwrap_or(from.len());
        let (run, after) = from.split_at(end);
        folded.push_str(before);
        match run.matches(BREAK).count() {
            0 => folded.push_str(run),
            1 => folded.push(' '),
            breaks => folded.extend(std::iter::repeat_n('\n', breaks - 1)),
        }
        rest = after;
    }
    folded.push_str(rest);
    folded
}

/// Returns the number of characters in the JSON that Go writes for a text, including the quotes.
fn json_length(text: &str) -> usize {
    text.chars().map(escaped_length).sum::<usize>() + 2
}

fn escaped_length(char: char) -> usize {
    match char {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => 6,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_line_characters_are_folded() {
        for (written, read) in
            [("a\u{85}b", "a b"), ("a \u{85} b", "a b"), ("\u{85}a", " a"), ("a\u{85}\u{85} b  c", "a\nb  c")]
        {
            assert_eq!(text(written).as_deref(), Ok(read));
        }
    }

    #[test]
    fn control_characters_are_refused() {
        assert_eq!(text("a\u{7f}"), Err(Problem::Control('\u{7f}')));
        assert_eq!(text("a\u{1b}\u{a0}").as_deref(), Ok("a\u{1b}\u{a0}"));
    }

    #[test]
    fn keys_are_bounded_by_their_json() {
        assert_eq!(key(&"a".repeat(1022)), Ok(()));
        assert_eq!(key(&"a".repeat(1023)), Err(Problem::LongKey));
        assert_eq!(key(&"<".repeat(171)), Err(Problem::LongKey));
        assert_eq!(key("a\u{85}"), Err(Problem::KeyWithBreak));
    }
}
