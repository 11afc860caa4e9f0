//! Handles the line breaks that only go-yaml recognizes, and byte order marks within the text. Besides the line feed,
//! go-yaml breaks lines at U+0085, U+2028, U+2029 and a carriage return without a line feed.
//!
//! Our parser does not break lines at these characters. So before parsing, this module replaces each of them with a
//! line feed, or with spaces if the character is within quotes. It also folds the lines of scalars that contain such
//! characters.
//!
//! Source: `is_break`, `read_line` and `yaml_parser_scan_plain_scalar` of go-yaml.

use std::iter;
use std::ops::Range;

use granit_parser::{Event, Parser};

use super::error::Problem;

const BREAK: &str = "this character is a line break for go-yaml, but not for most other parsers";
/// The byte order mark. Within a line, go-yaml treats it as an ordinary character, but our parser rejects it.
pub(super) const MARK: char = '\u{feff}';
/// The private-use character that replaces each byte order mark in the input of our parser. Both characters have the
/// same length in UTF-8.
pub(super) const SUBSTITUTE: char = '\u{f8ff}';
const MARKERS: [&str; 3] = ["---", "...", "%"];

/// Returns whether go-yaml treats `character` as a line break.
pub(super) fn is_break(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Returns the problem to report if a text contains a line break that only go-yaml recognizes, such as U+2028, and it
/// is unknown how go-yaml parses this text.
pub(super) fn problem() -> Problem {
    Problem::Dialect(BREAK.to_owned())
}

/// Returns the text with replacements for characters that go-yaml and our parser treat differently. `None` if there is
/// nothing to replace. The replacements have the same length in bytes, so byte offsets stay the same.
///
/// * A line break that only go-yaml recognizes, such as U+2028, becomes spaces and a line feed.
/// * Such a line break becomes only spaces if it seems to be within quotes. The reason is that our parser requires
///   indentation after a line feed within quotes, and go-yaml does not.
/// * A byte order mark within the text becomes U+F8FF.
///
/// # Errors
///
/// If the effect of a line break in go-yaml is unknown. The error is the byte offset of the line break. The effect is
/// unknown for line breaks next to `---`, `...` or `%`, and for a carriage return before `\r\n`.
pub(super) fn replaced(text: &str) -> Result<Option<String>, usize> {
    let is_usual = text.is_ascii() && !text.contains('\r');
    if is_usual || !text.contains(MARK) && others(text, &(0..text.len())).next().is_none() {
        return Ok(None);
    }
    let (mut replaced, mut copied, mut quotes) = (String::new(), 0, Quotes::START);
    for at in others(text, &(0..text.len())) {
        let end = at + text[at..].chars().next().map_or(1, char::len_utf8);
        let before = text[..at].rsplit(is_break).next().unwrap_or_default();
        let is_beside = MARKERS.iter().any(|marker| before.starts_with(marker) || text[end..].starts_with(marker));
        // In manifests, kustomize replaces `\r\n` with `\n` before it parses them, so it sees one line break less in
        // `\r\r\n`.
        if is_beside || text[at..].starts_with("\r\r\n") {
            return Err(at);
        }
        replaced.push_str(&text[copied..at]);
        quotes.read(&text[copied..at]);
        let last = if quotes.open.is_some() { ' ' } else { '\n' };
        quotes.read(&text[at..end]);
        replaced.extend(iter::repeat_n(' ', end - at - 1).chain([last]));
        copied = end;
    }
    replaced.push_str(&text[copied..]);
    // A byte order mark at the start is not part of the text, so it is not replaced.
    let start = if replaced.starts_with(MARK) { MARK.len_utf8() } else { 0 };
    let rest = replaced[start..].replace(MARK, SUBSTITUTE.encode_utf8(&mut [0; 4]));
    replaced.replace_range(start.., &rest);
    Ok(Some(replaced))
}

/// Restores the byte order marks in the scalar of a parser event. Before the text was parsed, the function `replaced`
/// replaced these marks with another character. Returns other events unchanged.
pub(super) fn with_marks(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Scalar(text, style, anchor, tag) if text.contains(SUBSTITUTE) => {
            Event::Scalar(text.replace(SUBSTITUTE, MARK.encode_utf8(&mut [0; 4])).into(), style, anchor, tag)
        }
        event => event,
    }
}

/// Converts `part`, a byte range in the parsed text, to a byte range in the original `text`. The parsed text has the
/// same length in bytes, but contains, for example, two spaces and a line feed instead of U+2028. If `part` starts or
/// ends in the middle of such a character of `text`, this position is moved to the end of the character.
pub(super) fn part_of(text: &str, part: &Range<usize>) -> Range<usize> {
    let whole = |at: usize| (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    whole(part.start)..whole(part.end)
}

/// Returns whether a part of a text contains a line break other than `\n` and `\r\n`.
pub(super) fn has_other(text: &str, part: &Range<usize>) -> bool {
    others(text, part).next().is_some()
}

/// Returns whether every unusual line break in a part of a text was replaced with a line feed before parsing. Unusual
/// line breaks are all except `\n` and `\r\n`, for example U+2028. If such a line break seems to be inside quotes, it
/// was replaced only with spaces.
///
/// `original` is the text before the replacement, and `replaced` is the text after it. `part` is a byte range of
/// `original`.
pub(super) fn are_replaced(original: &str, replaced: &str, part: &Range<usize>) -> bool {
    others(original, part).all(|at| {
        let end = at + original[at..].chars().next().map_or(1, char::len_utf8);
        replaced.as_bytes().get(end - 1) == Some(&b'\n')
    })
}

/// Returns the offsets of the line breaks other than `\n` and `\r\n` in a part of a text.
fn others(text: &str, part: &Range<usize>) -> impl Iterator<Item = usize> {
    let start = part.start;
    let breaks = text[part.clone()].match_indices(|character| character != '\n' && is_break(character));
    breaks.map(move |(at, _)| start + at).filter(|at| !text[*at..].starts_with("\r\n"))
}

/// The state of a scan for quotes and comments. It is reset at each line feed, so that a quote that is not closed
/// affects only one line.
struct Quotes {
    /// The quote character that began the current quoted text; `None` outside of quotes.
    open: Option<char>,
    in_comment: bool,
    /// Whether the next character follows a backslash in double quotes.
    is_escaped: bool,
    last: char,
    /// The last scanned character that is not a space or tab. A quote character begins quoted text only if this is a
    /// line break, or a character such as `:` or `,`.
    word: char,
}

impl Quotes {
    const START: Self = Self { open: None, in_comment: false, is_escaped: false, last: '\n', word: '\n' };

    /// Scans the next part of the text, and updates this state. `text` must directly follow the text of the previous
    /// call.
    fn read(&mut self, text: &str) {
        let (line, is_new) = text.rsplit_once('\n').map_or((text, false), |(_, line)| (line, true));
        if is_new {
            *self = Self::START;
        }
        line.chars().for_each(|character| self.step(character));
    }

    fn step(&mut self, character: char) {
        match (self.open, character) {
            _ if self.is_escaped => self.is_escaped = false,
            _ if self.in_comment => self.in_comment = !is_break(character),
            (Some('"'), '\\') => self.is_escaped = true,
            (Some(quote), _) if quote == character => self.open = None,
            (None, '"' | '\'') if is_break(self.word) || ":-?,[{".contains(self.word) => self.open = Some(character),
            (None, '#') if is_space(self.last) => self.in_comment = true,
            _ => {}
        }
        self.last = character;
        if !matches!(character, ' ' | '\t') {
            self.word = character;
        }
    }
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t') || is_break(character)
}

/// Folds the lines of a plain or quoted scalar. A single line feed becomes a space. If several line feeds follow each
/// other, the first one is removed, and the others stay. U+2028 and U+2029 always stay.
pub(super) fn folded(scalar: &str) -> String {
    let (mut text, mut rest) = (String::with_capacity(scalar.len()), scalar);
    while let Some(start) = rest.find(is_space) {
        let (word, from) = rest.split_at(start);
        let (gap, behind) = from.split_at(from.find(|character| !is_space(character)).unwrap_or(from.len()));
        text.push_str(word);
        let breaks = breaks_of(gap);
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

/// Returns the lines of a text as pairs of the line and its line break. The line break of the last line is empty.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = Some(text);
    iter::from_fn(move || {
        let text = rest?;
        let Some((at, first)) = text.match_indices(is_break).next() else { return rest.take().map(|line| (line, "")) };
        let end = at + if text[at..].starts_with("\r\n") { 2 } else { first.len() };
        rest = Some(&text[end..]);
        Some((&text[..at], &text[at..end]))
    })
}

/// Returns only the line breaks of `gap`, which consists of spaces, tabs and line breaks. As in go-yaml, U+2028 and
/// U+2029 stay unchanged, and every other line break becomes a line feed.
pub(super) fn breaks_of(gap: &str) -> String {
    let breaks: String = gap.replace("\r\n", "\n").chars().filter(|character| is_break(*character)).collect();
    breaks.replace(['\r', '\u{85}'], "\n")
}

/// Parses a single-quoted scalar of one or more lines. `None` if `written` does not begin and end with a single quote.
pub(super) fn single_quoted(written: &str) -> Option<String> {
    let inner = written.strip_prefix('\'')?.strip_suffix('\'')?;
    Some(folded(inner).replace("''", "'"))
}

/// Parses a double-quoted scalar of one or more lines. `None` if `written` does not begin and end with a double quote,
/// or if an escape is invalid.
pub(super) fn double_quoted(written: &str) -> Option<String> {
    let mut rest = written.strip_prefix('"')?.strip_suffix('"')?;
    let mut line = String::from('"');
    while let Some((text, from)) = rest.split_once('\\') {
        line.push_str(&folded(text).replace('\n', "\\n"));
        let escaped = from.chars().next()?;
        if is_break(escaped) {
            // An escaped line break joins two lines without a space: it is dropped with the spaces after it. Further
            // breaks are kept.
            let behind = from.strip_prefix("\r\n").unwrap_or(&from[escaped.len_utf8()..]);
            rest = behind.trim_start_matches(is_space);
            line.push_str(&breaks_of(&behind[..behind.len() - rest.len()]).replace('\n', "\\n"));
        } else {
            line.extend(['\\', escaped]);
            rest = &from[escaped.len_utf8()..];
        }
    }
    line.push_str(&folded(rest).replace('\n', "\\n"));
    line.push('"');
    let mut events = Parser::new_from_str(&line).filter_map(|event| Some(event.ok()?.0));
    events.find_map(|event| if let Event::Scalar(text, ..) = event { Some(text.into_owned()) } else { None })
}

#[cfg(test)]
mod tests {
    use crate::yaml::{self, Limits};

    fn value(text: &str) -> Option<String> {
        let node = yaml::nodes(text, 0, &Limits::default()).next()?.ok()?;
        node.at_path(&["a", "b"])?.text().map(str::to_owned)
    }

    /// Checks that values with unusual line breaks, such as U+2028, are parsed as kustomize parses them. The expected
    /// values come from the output of `kustomize build`.
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
        assert_eq!(value("a:\n  b: |\n    c\u{2028}").as_deref(), Some("c\u{2028}"));
        assert_eq!(value("a:\n  b: >-\n    c\u{85}    d\n").as_deref(), Some("c d"));
    }

    #[test]
    fn distinguishes_marks_from_their_substitute() {
        assert_eq!(value("\u{feff}a: {b: c}\n").as_deref(), Some("c"));
        assert_eq!(value("a: {b: \"c\u{feff}\"}\n").as_deref(), Some("c\u{feff}"));
        assert_eq!(value("a: {b: \u{f8ff}, c: d\u{85}e}\n").as_deref(), Some("\u{f8ff}"));
        let second = yaml::nodes("x: y\n---\n\u{feff}a: {b: c}\n", 0, &Limits::default()).nth(1);
        let second = second.expect("there are two").expect("it is read");
        assert_eq!(second.at_path(&["a", "b"]).and_then(crate::kustomize::node::Node::text), Some("c"));
    }

    /// Checks that the lines of quoted scalars are joined as in kustomize. The expected values come from the output of
    /// `kustomize build`.
    #[test]
    fn quoted_lines_are_folded_where_go_yaml_folds_them() {
        for (quoted, expected) in [
            ("'c\rd'", "c d"),
            ("'c\u{85}''d'", "c 'd"),
            ("'c \u{85} \r\n d'", "c\nd"),
            ("\"c\u{2028}\\nd\"", "c\u{2028}\nd"),
        ] {
            assert_eq!(value(&format!("a: {{b: {quoted}}}\n")).as_deref(), Some(expected), "{quoted:?}");
        }
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
        for text in
            ["a: {b: [\u{2029}}\n", "a: {b: 'c\u{2028}--- d'}\n", "a:\n  b: |\n    c\r\r\n", "a: {b: c}\u{2028}---\n"]
        {
            let error = yaml::nodes(text, 0, &Limits::default()).next().and_then(Result::err);
            assert!(error.is_some_and(|error| error.problem.is_open()), "{text:?}");
        }
    }
}
