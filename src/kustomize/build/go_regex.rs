//! Go's regular expressions.
//!
//! Differences in Go: a brace that does not begin a repetition is literal, classes such as `\d` are ASCII only, and
//! nested brackets, `&&`, `--` and `~~` have no special meaning.

use regex::Regex;

/// Compiles a Go expression.
///
/// # Errors
///
/// If it is invalid.
pub(super) fn compile(expression: &str) -> Result<Regex, regex::Error> {
    Regex::new(&translated(expression))
}

/// Returns the expression as our library writes it.
fn translated(expression: &str) -> String {
    let mut out = String::with_capacity(expression.len());
    let mut rest = expression;
    let mut class: Option<usize> = None;
    while let Some(next) = rest.chars().next() {
        let behind = &rest[next.len_utf8()..];
        let was_in_class = class.is_some();
        let taken = match (next, class) {
            ('\\', None) if behind.starts_with('Q') => literal(&behind[1..], &mut out) + 2,
            ('\\', _) => escape(rest, class.is_some(), &mut out),
            ('[', None) => {
                class = Some(0);
                out.push('[');
                1
            }
            ('[', Some(_)) if behind.starts_with(':') => named_class(rest, &mut out),
            ('[' | '&' | '~', Some(_)) => {
                out.push('\\');
                out.push(next);
                1
            }
            (']', Some(0)) => {
                out.push_str("\\]");
                1
            }
            (']', Some(_)) => {
                class = None;
                out.push(']');
                1
            }
            ('{', None) if !is_repetition(rest) => {
                out.push_str("\\{");
                1
            }
            _ => {
                out.push(next);
                next.len_utf8()
            }
        };
        if let Some(count) = &mut class
            && was_in_class
            && !(next == '^' && *count == 0)
        {
            *count += 1;
        }
        rest = &rest[taken..];
    }
    out
}

/// Writes an escape and returns its length.
fn escape(rest: &str, in_class: bool, out: &mut String) -> usize {
    let Some(letter) = rest.chars().nth(1) else {
        out.push('\\');
        return 1;
    };
    let ascii = match letter {
        'd' => "0-9",
        'w' => "0-9A-Za-z_",
        's' => "\\t\\n\\x0c\\r ",
        'D' | 'W' | 'S' if !in_class => {
            let lower = match letter {
                'D' => "[^0-9]",
                'W' => "[^0-9A-Za-z_]",
                _ => "[^\\t\\n\\x0c\\r ]",
            };
            out.push_str(lower);
            return 2;
        }
        _ => {
            out.push('\\');
            out.push(letter);
            return 1 + letter.len_utf8();
        }
    };
    match in_class {
        true => out.push_str(ascii),
        false => out.push_str(&format!("[{ascii}]")),
    }
    2
}

/// Writes the text between `\Q` and `\E` as it is, and returns its length with the `\E`.
fn literal(rest: &str, out: &mut String) -> usize {
    let (text, end) = rest.split_once("\\E").map_or((rest, 0), |(text, _)| (text, 2));
    out.push_str(&regex::escape(text));
    text.len() + end
}

/// Writes `[:name:]` and returns its length.
fn named_class(rest: &str, out: &mut String) -> usize {
    let end = rest.find(":]").map_or(1, |at| at + 2);
    out.push_str(&rest[..end]);
    end
}

/// Returns whether a brace begins `{n}`, `{n,}` or `{n,m}`.
fn is_repetition(rest: &str) -> bool {
    let Some(inner) = rest[1..].split_once('}').map(|(inner, _)| inner) else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match inner.split_once(',') {
        None => is_number(inner),
        Some((least, most)) => is_number(least) && (most.is_empty() || is_number(most)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_that_repeat_nothing_are_braces() {
        assert!(compile("^\\${name}-x$").unwrap().is_match("${name}-x"));
        assert!(compile("^a{2}$").unwrap().is_match("aa"));
        assert!(compile("^[[a&&b]+$").unwrap().is_match("[&"));
        assert!(compile("(").is_err());
        assert!(compile("^\\Qa.b\\E+$").unwrap().is_match("a.bb"));
    }

    #[test]
    fn classes_know_ascii_only() {
        assert!(!compile("^\\d$").unwrap().is_match("\u{663}"));
        assert!(compile("^[\\d_]+$").unwrap().is_match("1_2"));
        assert!(compile("^[[:alpha:]]$").unwrap().is_match("a"));
    }
}
