//! Parses block scalars with unusual line breaks, such as U+2028. go-yaml recognizes these line breaks, but our parser
//! does not.
//!
//! Source: `yaml_parser_scan_block_scalar` of go-yaml.

use std::ops::Range;

use super::breaks;

/// The header of a block scalar, such as `|` or `>-`.
struct Header {
    is_folded: bool,
    /// The chomping indicator. `-` removes the final line break, and `+` keeps all trailing line breaks. Without an
    /// indicator, one line break is kept.
    chomping: Option<char>,
}

/// Returns the text of a block scalar as go-yaml reads it. `part` is the range in the document from the end of the
/// scalar's header to the next token. `indent` is the indentation of the scalar, or `None` if all its lines are empty.
///
/// Returns `None` if a line has less indentation than the scalar. go-yaml may end the scalar there, so the text is
/// unknown.
pub(super) fn text(document: &str, part: Range<usize>, indent: Option<usize>) -> Option<String> {
    let Header { is_folded, chomping } = header(&document[..part.start])?;
    let indent = indent.unwrap_or(usize::MAX);
    let is_whole = part.end == document.len();
    let (mut text, mut leading, mut trailing) = (String::new(), String::new(), String::new());
    let mut was_blank = false;
    for (words, ended) in breaks::lines(&document[part]).skip(1) {
        let ended = breaks::breaks_of(ended);
        let blanks = words.len() - words.trim_start_matches(' ').len();
        // The indentation of the next token is not a line of the scalar.
        if blanks == words.len() && (blanks <= indent || ended.is_empty() && !is_whole) {
            trailing.push_str(&ended);
            continue;
        }
        let words = words.get(indent..).filter(|_| blanks >= indent)?;
        let is_blank = words.starts_with([' ', '\t']);
        match leading.as_str() {
            "\n" if is_folded && !was_blank && !is_blank && trailing.is_empty() => text.push(' '),
            "\n" if is_folded && !was_blank && !is_blank => {}
            _ => text.push_str(&leading),
        }
        text.push_str(&trailing);
        text.push_str(words);
        (leading, trailing, was_blank) = (ended, String::new(), is_blank);
    }
    Some(match chomping {
        Some('-') => text,
        Some(_) => text + &leading + &trailing,
        None => text + &leading,
    })
}

/// Parses the header of a block scalar, such as `>-`, at the end of `text`. A comment may follow the header. `None` if
/// the last line of `text` does not end with a header.
fn header(text: &str) -> Option<Header> {
    let line = text.rsplit(breaks::is_break).next()?;
    let headers = line.match_indices(['|', '>']).map(|(at, style)| (style, &line[at + 1..]));
    headers.into_iter().find_map(|(style, rest)| {
        let behind = rest.trim_start_matches(|letter| matches!(letter, '+' | '-' | '1'..='9'));
        let (indicators, comment) = (&rest[..rest.len() - behind.len()], behind.trim_start_matches([' ', '\t']));
        let ends = behind.is_empty() || behind.starts_with([' ', '\t']);
        let is_header = ends && indicators.len() <= 2 && (comment.is_empty() || comment.starts_with('#'));
        is_header.then(|| Header { is_folded: style == ">", chomping: indicators.chars().find(|c| "+-".contains(*c)) })
    })
}
