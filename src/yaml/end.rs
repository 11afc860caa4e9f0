//! Handles `...`, the YAML document end marker. Splits a text at the marker, and checks the text after it.
//!
//! go-yaml v3 treats the text after the marker as another document, but scans only its first one to three tokens. So
//! this module checks only these tokens. The check is separate, because the YAML parser of Portcullis rejects other
//! text on the line of the marker.
//!
//! Source: `yaml_parser_fetch_more_tokens` of go-yaml v3, and the observed behavior of `kubectl kustomize`.

use super::error::{Problem, YamlError};
use super::stream::Chunk;

const END: &str = "...";
const NO_DOCUMENT: &str = "there is no document before the document end marker `...`";
const NO_TOKEN: &str = "the text after `...` begins with an invalid character";

/// Splits `chunk` at the first document end marker, which is `...` at the start of a line. Returns the part before the
/// marker, and the part that begins with the marker. The second part is `None` if there is no marker.
///
/// Returns an error if only comments and blank lines precede the marker, because there is then no document to end. Set
/// `may_be_marked` to true if a `---` line may precede `chunk`. Such a line may begin a document, so this error is then
/// not returned.
pub(super) fn cut(chunk: Chunk<'_>, may_be_marked: bool) -> Result<(Chunk<'_>, Option<Chunk<'_>>), YamlError> {
    let mut at = 0;
    let mut has_begun = may_be_marked;
    if chunk.text.contains(END) {
        for line in chunk.text.split_inclusive('\n') {
            if is_end(line) && !has_begun {
                return Err(YamlError { place: chunk.place(at), problem: Problem::Syntax(NO_DOCUMENT.to_owned()) });
            }
            if is_end(line) {
                let (document, rest) = chunk.split(at);
                return Ok((document, Some(rest)));
            }
            has_begun |= !is_blank(line);
            at += line.len();
        }
    }
    Ok((chunk, None))
}

fn is_end(line: &str) -> bool {
    line.strip_prefix(END).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

fn is_blank(line: &str) -> bool {
    let text = line.trim();
    text.is_empty() || text.starts_with('#')
}

/// Checks the tokens after the `...` that ends a document. Checks only the tokens that go-yaml v3 scans. Returns an
/// error if go-yaml rejects them or may reject them. `behind` begins with this `...`.
pub(super) fn check(behind: Chunk<'_>) -> Result<(), YamlError> {
    let rest = first_token(behind.text);
    let problem = match rest.chars().next() {
        None => return Ok(()),
        Some(_) if begins_block(behind.text) => return Ok(()),
        Some('@' | '`') => Problem::Syntax(NO_TOKEN.to_owned()),
        Some(control) if control.is_control() => Problem::Syntax(NO_TOKEN.to_owned()),
        Some(_) => Problem::BehindEnd,
    };
    Err(YamlError { place: behind.place(behind.text.len() - rest.len()), problem })
}

/// Returns whether `text` begins with a mapping key, such as `a:`, or with the dash of a list element. The key must be
/// plain, and the key or dash must be the first token of its line.
///
/// `text` is the text after a document or after its value. If the result is true, go-yaml accepts `text`, because it
/// reads only this first token.
pub(super) fn begins_block(text: &str) -> bool {
    let rest = first_token(text);
    let line = text[..text.len() - rest.len()].rsplit_once('\n');
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let behind = match rest.strip_prefix('-') {
        Some(behind) => Some(behind),
        None => rest.trim_start_matches(is_plain).strip_prefix(':').filter(|_| !rest.starts_with(':')),
    };
    let is_token = behind.is_some_and(|behind| behind.is_empty() || behind.starts_with([' ', '\n']));
    is_token && line.is_some_and(|(_, indentation)| indentation.chars().all(|c| c == ' '))
}

/// Returns the part of the text that begins with its first YAML token. Skips spaces, line breaks, comments and document
/// end markers (`...`), but not tabs.
fn first_token(mut text: &str) -> &str {
    let mut begins_line = true;
    loop {
        text = match text.as_bytes().first() {
            Some(b' ') => &text[1..],
            Some(b'\n' | b'\r') => {
                begins_line = true;
                text = &text[1..];
                continue;
            }
            Some(b'#') => text.find('\n').map_or("", |end| &text[end..]),
            Some(b'.') if begins_line && is_end(text) => &text[END.len()..],
            _ => return text,
        };
        begins_line = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_ends_at_the_first_end_behind_it() {
        let split = |text| {
            let (document, rest) = cut(Chunk::whole(text), false).unwrap();
            (document.text, rest.map(|rest| (rest.text, rest.byte, rest.lines)))
        };
        assert_eq!(split("a: b\n... c\nd\n"), ("a: b\n", Some(("... c\nd\n", 5, 1))));
        assert_eq!(split("a: ...\n....\n"), ("a: ...\n....\n", None));
        assert_eq!(split("---\n...\na"), ("---\n", Some(("...\na", 4, 1))));
        for text in ["...\na: b\n", "# c\n\n... # d\na: b\n", "..."] {
            assert!(cut(Chunk::whole(text), false).is_err(), "{text:?}");
            assert!(cut(Chunk::whole(text), true).is_ok(), "{text:?}");
        }
        assert_eq!(split("a\n..."), ("a\n", Some(("...", 2, 1))));
    }

    #[test]
    fn what_begins_with_no_token_is_refused_and_others_are_unsure() {
        let problem = |text| check(Chunk::whole(&format!("...{text}\n"))).err().map(|error| error.problem);
        for text in ["\tx", "\n\n\tx", "\n# c\n\tx", "\n\t\n", " \t# c", "\n  @x", "\n`", "\n...\n\tx", "\n\u{1}"] {
            assert!(matches!(problem(text), Some(Problem::Syntax(_))), "{text:?}");
        }
        for text in [" x", " x: y", "\nx:y", "\n\"abc", "\n-a: b", "\n%YAML 1.1", "\n...x"] {
            assert_eq!(problem(text), Some(Problem::BehindEnd), "{text:?}");
        }
        for text in ["", " # c\n# d", "\n\n...\n# c", "\nx: [", "\n# c\n  a-b/c:", "\n- [", "\n -"] {
            assert_eq!(problem(text), None, "{text:?}");
        }
    }
}
