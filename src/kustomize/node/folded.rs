//! Reproduces a bug of go-yaml that changes the text of folded block scalars.
//!
//! In a folded block scalar, a line break between two lines without indentation stands for a space. To keep the line
//! break, go-yaml must write an empty line between the two lines. But it makes two mistakes:
//!
//! - It also writes an empty line between a line without indentation and an indented line. But a line break at this
//!   position does not stand for a space, so the empty line is not needed. The text gets one more line break at this
//!   position each time kustomize writes and parses the node.
//! - It adds no empty line if the text begins with whitespace. The line break then becomes a space.
//!
//! Source: `yaml_emitter_write_folded_scalar` and `yaml_parser_scan_block_scalar` of go-yaml v3.

/// Returns the text of a folded scalar after go-yaml has written and parsed it. `None` if the text does not change, or
/// if go-yaml writes it in another style.
pub(super) fn refolded(text: &str) -> Option<String> {
    if !text.contains('\n') || !is_block(text) {
        return None;
    }
    let (lines, breaks) = written(text);
    let read = read(&lines, breaks);
    (read != text).then_some(read)
}

/// Returns whether go-yaml can write a text as a block scalar. If it cannot, go-yaml writes the text in double quotes.
fn is_block(text: &str) -> bool {
    let is_plain = |c: char| matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}');
    text.chars().all(is_plain) && !text.contains(" \n") && !text.ends_with(' ')
}

/// Returns the lines that go-yaml writes for a text in a folded block scalar. Also returns the number of line breaks at
/// the end of the text.
fn written(text: &str) -> (Vec<&str>, usize) {
    let starts_blank = text.starts_with([' ', '\t', '\n']);
    let body = text.trim_end_matches('\n');
    let mut lines = Vec::new();
    for (at, line) in body.split('\n').enumerate() {
        let before: Option<&str> = if at == 0 { None } else { body.split('\n').nth(at - 1) };
        let folds = before.is_some_and(|before| !before.is_empty() && !before.starts_with([' ', '\t']));
        if folds && !starts_blank {
            lines.push("");
        }
        lines.push(line);
    }
    (lines, text.len() - body.len())
}

/// Returns the text that go-yaml parses from a folded block scalar. `lines` contains the lines of the scalar, and
/// `breaks` is the number of line breaks at the end.
fn read(lines: &[&str], breaks: usize) -> String {
    let mut out = String::new();
    let mut pending: Option<(usize, bool)> = None;
    for line in lines {
        if line.is_empty() {
            match &mut pending {
                Some((empty, _)) => *empty += 1,
                None => out.push('\n'),
            }
            continue;
        }
        let is_indented = line.starts_with([' ', '\t']);
        if let Some((empty, was_indented)) = pending {
            match (is_indented || was_indented, empty) {
                (false, 0) => out.push(' '),
                (false, empty) => out.push_str(&"\n".repeat(empty)),
                (true, empty) => out.push_str(&"\n".repeat(empty + 1)),
            }
        }
        out.push_str(line);
        pending = Some((0, is_indented));
    }
    out.push_str(&"\n".repeat(breaks));
    out
}

#[cfg(test)]
mod tests {
    use super::refolded;

    #[test]
    fn lines_that_are_indented_more_get_an_empty_line_before_them() {
        assert_eq!(refolded("x\n  y\nz\n").as_deref(), Some("x\n\n  y\nz\n"));
    }

    #[test]
    fn other_texts_stay() {
        for text in ["x y\nz\n", "x", "x\n", "a\n\nb\n", "x  \ny\n"] {
            assert_eq!(refolded(text), None, "{text:?}");
        }
    }
}
