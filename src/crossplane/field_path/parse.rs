//! The grammar of field paths.

use super::Segment;
use super::error::ParseError;

const DELIMITERS: [char; 3] = ['.', '[', ']'];

/// Parses the text of a path into its segments. Fails if the text is not a valid path.
pub(super) fn segments(text: &str) -> Result<Vec<Segment>, ParseError> {
    let mut segments = Vec::new();
    let mut rest = text;
    let mut after_dot = false;
    while let Some(first) = rest.chars().next() {
        let position = text.len() - rest.len();
        let unexpected = || Err(ParseError::Unexpected { delimiter: first, position });
        match first {
            '.' if position == 0 || after_dot || rest.len() == 1 => return unexpected(),
            '.' => {
                rest = &rest[1..];
                after_dot = true;
                continue;
            }
            ']' => return unexpected(),
            '[' if after_dot => return unexpected(),
            '[' => {
                let inner = bracketed(rest, position)?;
                segments.push(inside(inner));
                rest = &rest[inner.len() + 2..];
            }
            _ => {
                let (name, tail) = rest.split_at(rest.find(DELIMITERS).unwrap_or(rest.len()));
                segments.push(field(name));
                rest = tail;
            }
        }
        after_dot = false;
    }
    Ok(segments)
}

/// Returns the text between the opening bracket at the start of `rest` and its closing bracket. `position` is the byte
/// offset of `rest` in the path, for error messages.
fn bracketed(rest: &str, position: usize) -> Result<&str, ParseError> {
    let inner = rest[1..].split_once(']').map(|(inner, _)| inner).ok_or(ParseError::Unterminated { position })?;
    match inner.find('[') {
        Some(at) => Err(ParseError::Unexpected { delimiter: '[', position: position + 1 + at }),
        None if inner.is_empty() => Err(ParseError::Unexpected { delimiter: ']', position: position + 1 }),
        None => Ok(inner),
    }
}

fn inside(text: &str) -> Segment {
    // Rust's `parse` would accept a sign.
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(index) if is_number => Segment::Index(index),
        _ => field(text),
    }
}

fn field(text: &str) -> Segment {
    Segment::Field(text.trim_matches(['\'', '"']).to_owned())
}
