//! Block scalars that contain line breaks which our parser does not know.
//!
//! Source: `yaml_parser_scan_block_scalar` of go-yaml.

use std::ops::Range;

use super::breaks;

/// What the header of a block says.
struct Header {
    is_folded: bool,
    /// `-` without the last break, `+` with all that follow it.
    chomping: Option<char>,
}

/// Returns the text of a block scalar as go-yaml reads it. The `part` of the document begins behind its header and ends
/// before the next token; `indent` is the number of blanks before each of its lines, if it has any that is not empty.
///
/// `None` if it is unknown: a line has fewer blanks, so that it may end the block.
pub(super) fn text(document: &str, part: Range<usize>, indent: Option<usize>) -> Option<String> {
    let Header { is_folded, chomping } = header(&document[..part.start])?;
    let indent = indent.unwrap_or(usize::MAX);
    let is_whole = part.end == document.len();
    let (mut text, mut leading, mut trailing) = (String::new(), String::new(), String::new());
    let mut was_blank = false;
    for (words, ended) in breaks::lines(&document[part]).skip(1) {
        let ended = breaks::breaks_of(ended);
        let blanks = words.len() - words.trim_start_matches(' ').len();
        // what stands before the next token is no line
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

/// Reads the header at the end of a text.
fn header(text: &str) -> Option<Header> {
    let line = text.rsplit(breaks::is_break).next()?;
    let headers = line.match_indices(['|', '>']).map(|(at, style)| (style, &line[at + 1..]));
    headers.into_iter().find_map(|(style, rest)| {
        let (indicators, comment) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
        let is_header = indicators.len() <= 2
            && indicators.chars().all(|letter| matches!(letter, '+' | '-' | '1'..='9'))
            && comment.trim_start().chars().next().is_none_or(|letter| letter == '#');
        is_header.then(|| Header { is_folded: style == ">", chomping: indicators.chars().find(|c| "+-".contains(*c)) })
    })
}
