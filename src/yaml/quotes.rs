//! Parses quoted scalars of several lines with any indentation, as go-yaml does.

use super::error::YamlError;
use super::stream::Chunk;

/// Number of spaces that are inserted before a line within quotes. They are needed because our parser requires
/// indentation there, and go-yaml does not. Their number is enough for any nesting depth that occurs in practice. The
/// spaces do not change the value, because YAML ignores spaces at the start of such a line.
const BLANKS: usize = 256;
/// Maximum total number of bytes that are parsed again for one text. Our parser rejects a text if a line within quotes
/// is not indented. [`with_any_indentation`] then inserts spaces before this line and parses the whole text again. It
/// repeats this for each such line. If the limit is reached before the text is valid, the text is rejected.
const MAX_BYTES: usize = 16 << 20;

/// Parses a text with `parse`, and accepts any indentation of the lines within quotes, as go-yaml does. If `parse`
/// rejects the indentation of such a line, inserts spaces before the line and parses the text again. Line numbers stay
/// the same.
///
/// # Errors
///
/// The first error of `parse`, if its reason is not the indentation of a line within quotes, or if the text with the
/// inserted spaces is invalid too.
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
