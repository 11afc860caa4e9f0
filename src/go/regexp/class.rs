//! Translates character classes in brackets, such as `[a-z]`, from Go's syntax to that of the `regex` crate.

use super::error::{Code, SyntaxError};
use super::escape::{character, perl_class, unicode_class};

const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// Translates the character class at the start of `rest` to the syntax of the `regex` crate. Returns the translation
/// and the remaining text.
pub(super) fn class(rest: &str) -> Result<(String, &str), SyntaxError> {
    let mut out = String::from("[");
    let mut left = &rest[1..];
    if let Some(after) = left.strip_prefix('^') {
        out.push('^');
        left = after;
    }
    let mut is_first = true;
    let mut items = 0;
    while is_first || !left.starts_with(']') {
        is_first = false;
        let (item, after) = item(left, rest)?;
        items += usize::from(!item.is_empty());
        out.push_str(&item);
        left = after;
    }
    if items == 0 {
        // All items are surrogates, which no text contains, so the class matches nothing.
        out.push_str(r"&&[^\x{0}-\x{10FFFF}]");
        out.insert_str(1 + usize::from(out.starts_with("[^")), r"\x{0}");
    }
    out.push(']');
    Ok((out, &left[1..]))
}

/// Translates one member of a character class: a named class, a character or a range. `left` is the rest of the
/// pattern, beginning with this member. `whole` is the rest of the pattern, beginning with the class; error messages
/// show it. Returns the translation, and the text after the member.
fn item<'r>(left: &'r str, whole: &str) -> Result<(String, &'r str), SyntaxError> {
    if let Some((name, after)) = posix(left)? {
        return Ok((name, after));
    }
    if let Some(found) = unicode_class(left)? {
        return Ok(found);
    }
    let letter = left.strip_prefix('\\').and_then(|after| after.chars().next());
    if let Some(class) = letter.and_then(perl_class) {
        return Ok((class.to_owned(), &left[2..]));
    }
    let (low, after) = single(left, whole)?;
    let ends = after.strip_prefix('-').filter(|after| !after.is_empty() && !after.starts_with(']'));
    let Some(end) = ends else { return Ok((range(low, low), after)) };
    let (high, after) = single(end, whole)?;
    if high < low {
        return Err(SyntaxError::new(Code::CharRange, &left[..left.len() - after.len()]));
    }
    Ok((range(low, high), after))
}

/// Translates the named class at the start of `left`, such as `[:alpha:]`. Returns the class and the remaining text.
/// `None` if `left` does not start with a named class. Fails if the name is unknown.
fn posix(left: &str) -> Result<Option<(String, &str)>, SyntaxError> {
    let Some(end) = left.strip_prefix("[:").and_then(|after| after.find(":]")) else { return Ok(None) };
    let (whole, after) = left.split_at(end + 4);
    let name = &whole[2..end + 2];
    match POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
        true => Ok(Some((whole.to_owned(), after))),
        false => Err(SyntaxError::new(Code::CharRange, whole)),
    }
}

fn single<'r>(left: &'r str, whole: &str) -> Result<(u32, &'r str), SyntaxError> {
    match left.chars().next() {
        None => Err(SyntaxError::new(Code::MissingBracket, whole)),
        Some('\\') => character(left),
        Some(c) => Ok((u32::from(c), &left[c.len_utf8()..])),
    }
}

/// Returns the range of code points from `low` to `high` in the syntax of the `regex` crate. Surrogates are left out,
/// because the crate does not support them. Empty if only surrogates are in the range.
fn range(low: u32, high: u32) -> String {
    let low = if (0xD800..=0xDFFF).contains(&low) { 0xE000 } else { low };
    let high = if (0xD800..=0xDFFF).contains(&high) { 0xD7FF } else { high };
    match low <= high {
        true if low == high => format!("\\x{{{low:X}}}"),
        true => format!("\\x{{{low:X}}}-\\x{{{high:X}}}"),
        false => String::new(),
    }
}
