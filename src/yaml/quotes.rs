//! Quoted scalars of several lines, which go-yaml reads with any indentation.

use super::error::{Problem, YamlError};
use super::stream::Chunk;

/// The message of our parser for such a line.
const INDENTATION: &str = "invalid indentation in multiline quoted scalar";
/// Enough blanks for any nesting that occurs; in quotes they count as one.
const BLANKS: usize = 256;
/// Maximum number of bytes that are parsed again.
const MAX_BYTES: usize = 16 << 20;

/// Parses a text with `parse`; if a line within quotes is not indented, parses it again with blanks before that line. The
/// lines keep their numbers.
///
/// # Errors
///
/// The first error, if it is another one.
pub(super) fn with_any_indentation<T>(
    chunk: Chunk<'_>,
    mut parse: impl FnMut(Chunk<'_>) -> Result<T, YamlError>,
) -> Result<T, YamlError> {
    let refused = match parse(chunk) {
        Err(error) if is_indentation(&error) => error,
        parsed => return parsed,
    };
    let (mut text, mut bad, mut parsed) = (chunk.text.to_owned(), refused.place.line, 0);
    loop {
        let Some(at) = start_of_line(&text, bad - chunk.lines) else { return Err(refused) };
        text.insert_str(at, &" ".repeat(BLANKS));
        parsed += text.len();
        match parse(Chunk { text: &text, ..chunk }) {
            Err(error) if is_indentation(&error) && error.place.line > bad && parsed < MAX_BYTES => {
                bad = error.place.line;
            }
            result => return result.map_err(|_| refused),
        }
    }
}

fn is_indentation(error: &YamlError) -> bool {
    matches!(&error.problem, Problem::Syntax(text) | Problem::Dialect(text) if text.contains(INDENTATION))
}

/// Returns the position of a line, counted from one.
fn start_of_line(text: &str, line: u32) -> Option<usize> {
    let before = text.split_inclusive('\n').take((line as usize).checked_sub(1)?).map(str::len).sum();
    (before < text.len()).then_some(before)
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
        assert_eq!(value("x: y\n---\na:\n  b: 'c\n d'\n"), None, "the first document is another one");
        assert_eq!(value("a:\n  b: 'c\n d'\n").as_deref(), Some("c d"));
        assert_eq!(value("a:\n  b: 'c\n d\n"), None);
    }
}
