//! Parses quoted scalars of several lines with any indentation, as go-yaml does.

use super::error::YamlError;
use super::stream::Chunk;

/// Number of spaces that replace the missing indentation. It is enough for any nesting depth that occurs in practice.
/// Within quotes, all of these spaces count as one.
const BLANKS: usize = 256;
/// Maximum number of bytes that are parsed again because a line within quotes is not indented.
const MAX_BYTES: usize = 16 << 20;

/// Parses a text with `parse`. If a line within quotes is not indented, inserts spaces before that line and parses the
/// text again. The lines keep their numbers.
///
/// # Errors
///
/// The error of the first attempt, if it has another reason or parsing with spaces also fails.
pub(super) fn with_any_indentation<T>(
    chunk: Chunk<'_>,
    mut parse: impl FnMut(Chunk<'_>) -> Result<T, YamlError>,
) -> Result<T, YamlError> {
    let refused = match parse(chunk) {
        Err(error) if error.is_indentation() => error,
        parsed => return parsed,
    };
    let (mut text, mut parsed, mut at) = (chunk.text.to_owned(), 0, refused.place.start - chunk.byte);
    while text.is_char_boundary(at) {
        text.insert_str(at, &" ".repeat(BLANKS));
        parsed += text.len();
        let behind = at + BLANKS;
        match parse(Chunk { text: &text, ..chunk }) {
            Err(error) if error.is_indentation() && error.place.start - chunk.byte > behind && parsed < MAX_BYTES => {
                at = error.place.start - chunk.byte;
            }
            result => return result.map_err(|_| refused),
        }
    }
    Err(refused)
}

#[cfg(test)]
mod tests {
    use crate::yaml::{self, Limits};

    fn value(text: &str) -> Option<String> {
        let node = yaml::nodes(text, 0, &Limits::default()).next()?.ok()?;
        node.at_path(&["a", "b"])?.text().map(str::to_owned)
    }

    #[test]
    fn lines_in_quotes_need_no_indentation() {
        assert_eq!(value("a:\n  b: \"c\nd\n\n  e\nf\"\n").as_deref(), Some("c d\ne f"));
        assert_eq!(value("a:\n  b: \"c\u{85}\r\nd\n\n\u{85} e\nf\"\n").as_deref(), Some("c\nd\n\ne f"));
        assert_eq!(value("x: y\n---\na:\n  b: 'c\n d'\n"), None, "the first document is another one");
        assert_eq!(value("a:\n  b: 'c\n d'\n").as_deref(), Some("c d"));
        assert_eq!(value("a:\n  b: 'c\n d\n"), None);
    }
}
