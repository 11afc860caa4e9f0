//! The line breaks that go-yaml has besides the line feed: U+0085, U+2028, U+2029 and a lone carriage return.
//!
//! Our parser breaks no line there. It is given a line feed for each of them, and the scalars that contain some are
//! folded here.
//!
//! Source: `is_break`, `read_line` and `yaml_parser_scan_plain_scalar` of go-yaml.

use std::iter;
use std::ops::Range;

use super::error::Problem;

const BREAK: &str = "here is a character that ends a line for go-yaml, but seldom for others";
const MARKERS: [&str; 3] = ["---", "...", "%"];

/// Returns whether go-yaml breaks a line at a character.
pub(super) fn is_break(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Returns the problem of a break whose effect is unknown.
pub(super) fn problem() -> Problem {
    Problem::Dialect(BREAK.to_owned())
}

/// Returns the text with blanks and a line feed of the same length for each of these breaks, except those that seem to
/// be in quotes; `None` if it has no such break.
///
/// # Errors
///
/// The offset of a break beside a marker of documents or a directive, where the text may be split differently.
pub(super) fn replaced(text: &str) -> Result<Option<String>, usize> {
    if text.is_ascii() && !text.contains('\r') || others(text, &(0..text.len())).next().is_none() {
        return Ok(None);
    }
    let (mut replaced, mut copied) = (String::new(), 0);
    for at in others(text, &(0..text.len())).filter(|at| !is_within_quotes(text, *at)) {
        let end = at + text[at..].chars().next().map_or(1, char::len_utf8);
        let before = text[..at].rsplit(is_break).next().unwrap_or_default();
        if MARKERS.iter().any(|marker| before.starts_with(marker) || text[end..].starts_with(marker)) {
            return Err(at);
        }
        replaced.push_str(&text[copied..at]);
        replaced.extend(iter::repeat_n(' ', end - at - 1).chain(['\n']));
        copied = end;
    }
    replaced.push_str(&text[copied..]);
    Ok(Some(replaced))
}

/// Moves the ends of a part that is measured in a replaced text to characters of the text: an empty scalar may be within a break.
pub(super) fn part_of(text: &str, part: &Range<usize>) -> Range<usize> {
    let whole = |at: usize| (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    whole(part.start)..whole(part.end)
}

/// Returns whether a part of a text contains such a break.
pub(super) fn has_other(text: &str, part: &Range<usize>) -> bool {
    others(text, part).next().is_some()
}

/// Returns whether none of such breaks in a part of a text was replaced.
pub(super) fn are_kept(text: &str, part: &Range<usize>) -> bool {
    others(text, part).all(|at| is_within_quotes(text, at))
}

/// Returns whether all such breaks in a part of a text were replaced.
pub(super) fn are_replaced(text: &str, part: &Range<usize>) -> bool {
    !others(text, part).any(|at| is_within_quotes(text, at))
}

/// Returns the offsets of the breaks other than line feeds, with or without a carriage return, in a part of a text.
fn others(text: &str, part: &Range<usize>) -> impl Iterator<Item = usize> {
    let start = part.start;
    let breaks = text[part.clone()].match_indices(|character| character != '\n' && is_break(character));
    breaks.map(move |(at, _)| start + at).filter(|at| !text[*at..].starts_with("\r\n"))
}

/// Returns whether a break seems to be between the quotes of one line. Our parser keeps it there.
fn is_within_quotes(text: &str, at: usize) -> bool {
    let before = text[..at].rsplit('\n').next().unwrap_or_default();
    let is_open = |quote, other| before.matches(quote).count() % 2 == 1 && !before.contains([other, '#', '\\']);
    !text[at..].starts_with('\r') && (is_open('"', '\'') || is_open('\'', '"'))
}

/// Folds the lines of a plain scalar, or of one in quotes. A single line feed becomes a blank; a separator stays.
pub(super) fn folded(scalar: &str) -> String {
    let is_space = |character: char| matches!(character, ' ' | '\t') || is_break(character);
    let (mut text, mut rest) = (String::with_capacity(scalar.len()), scalar);
    while let Some(start) = rest.find(is_space) {
        let (word, from) = rest.split_at(start);
        let (gap, behind) = from.split_at(from.find(|character| !is_space(character)).unwrap_or(from.len()));
        text.push_str(word);
        let breaks: String = gap.replace("\r\n", "\n").chars().filter(|character| is_break(*character)).collect();
        let breaks = breaks.replace(['\r', '\u{85}'], "\n");
        match (breaks.strip_prefix('\n'), breaks.is_empty()) {
            (_, true) => text.push_str(gap),
            (Some(""), _) => text.push(' '),
            (Some(more), _) => text.push_str(more),
            (None, _) => text.push_str(&breaks),
        }
        rest = behind;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use crate::yaml::{self, Limits};

    fn value(text: &str) -> Option<String> {
        let node = yaml::nodes(text, 0, &Limits::default()).next()?.ok()?;
        node.at_path(&["a", "b"])?.text().map(str::to_owned)
    }

    /// The expected texts are those of `kustomize build`.
    #[test]
    fn lines_break_where_go_yaml_breaks_them() {
        assert_eq!(value("a: {b: c\u{2028}d}\n").as_deref(), Some("c\u{2028}d"));
        assert_eq!(value("a: {b: c \u{2029} d}\n").as_deref(), Some("c\u{2029}d"));
        assert_eq!(value("a: {b: c\u{85}d}\n").as_deref(), Some("c d"));
        assert_eq!(value("a: {b: c\rd}\n").as_deref(), Some("c d"));
        assert_eq!(value("a:\u{85}  b: c\n").as_deref(), Some("c"));
        assert_eq!(value("# note\u{2028}a:\n\u{2028}  b: c # d\u{85}\n").as_deref(), Some("c"));
        assert_eq!(value("a: {b: \"c\u{2028}d\"}\n").as_deref(), Some("c\u{2028}d"));
        assert_eq!(value("a: {b: 'c \u{2028} d'}\n").as_deref(), Some("c\u{2028}d"));
        assert_eq!(value("a: {b: 'c  d\u{85}e'}\n").as_deref(), Some("c  d e"));
        assert_eq!(value("a: {b: c, ? 'd\u{2028}e' : f}\n").as_deref(), Some("c"));
    }

    #[test]
    fn keys_end_on_their_line() {
        for key in ["'c\u{2028}'", "\"c\u{2029}d\"", "'c\u{85}d'"] {
            for text in [format!("a: {{b: c, {key}: d}}\n"), format!("a:\n  b: c\n  {key}: d\n"), format!("{key}: d\n")]
            {
                assert!(yaml::nodes(&text, 0, &Limits::default()).any(|node| node.is_err()), "{text:?}");
            }
        }
    }

    #[test]
    fn other_breaks_make_a_text_unknown() {
        for text in [
            "a: {b: 'c\rd'}\n",
            "a: {b: \"c\u{2028}\\nd\"}\n",
            "a: {b: [\u{2029}}\n",
            "a:\n  b: |\n    c\u{2028}\n",
            "a: {b: c}\u{2028}---\n",
        ] {
            let error = yaml::nodes(text, 0, &Limits::default()).next().and_then(Result::err);
            assert!(error.is_some_and(|error| error.problem.is_open()), "{text:?}");
        }
    }
}
