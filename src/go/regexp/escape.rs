//! Translates escape sequences of Go's regular expressions, such as `\d`, `\pL` and `\x41`, to the syntax of the
//! `regex` crate.

use super::error::{Code, SyntaxError};

/// Returns the ASCII class for the escape `\` followed by `letter`, in the syntax of the `regex` crate. The letters are
/// `d`, `s` and `w`, and `D`, `S` and `W` for the opposite classes. `None` for other letters.
pub(super) fn perl_class(letter: char) -> Option<&'static str> {
    Some(match letter {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        's' => r"[\t\n\f\r ]",
        'S' => r"[^\t\n\f\r ]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        _ => return None,
    })
}

/// Translates a Unicode class at the start of `rest`, such as `\pL`, `\p{Greek}` or `\P{^Greek}`. Returns the class in
/// the syntax of the `regex` crate, and the remaining text. `None` if `rest` does not start with a Unicode class.
pub(super) fn unicode_class(rest: &str) -> Result<Option<(String, &str)>, SyntaxError> {
    let (mut is_negative, after) = match rest.get(..2) {
        Some(r"\p") => (false, &rest[2..]),
        Some(r"\P") => (true, &rest[2..]),
        _ => return Ok(None),
    };
    let wrong = |part: &str| SyntaxError::new(Code::CharRange, part);
    let Some(first) = after.chars().next() else { return Ok(None) };
    let (name, after) = match after.strip_prefix('{') {
        None => after.split_at(first.len_utf8()),
        Some(inner) => inner.split_once('}').ok_or_else(|| wrong(rest))?,
    };
    let part = &rest[..rest.len() - after.len()];
    let name = match name.strip_prefix('^') {
        Some(name) => {
            is_negative = !is_negative;
            name
        }
        None => name,
    };
    let letter = if is_negative { 'P' } else { 'p' };
    let exists = |class: &String| regex::Regex::new(class).is_ok();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let class = ["gc", "sc"].map(|property| format!("\\{letter}{{{property}={name}}}")).into_iter().find(exists);
    class.filter(|_| is_name).map(|class| Some((class, after))).ok_or_else(|| wrong(part))
}

/// Parses the escape at the start of `rest`. Returns its code point and the remaining text.
pub(super) fn character(rest: &str) -> Result<(u32, &str), SyntaxError> {
    let mut chars = rest[1..].chars();
    let Some(c) = chars.next() else { return Err(SyntaxError::new(Code::TrailingBackslash, "")) };
    let wrong = |after: &str| SyntaxError::new(Code::Escape, &rest[..rest.len() - after.len()]);
    let value = match c {
        '1'..='7' if !chars.as_str().starts_with(|c| ('0'..='7').contains(&c)) => return Err(wrong(chars.as_str())),
        '0'..='7' => return Ok(octal(&rest[1..])),
        'x' => return hexadecimal(chars.as_str()).map_err(wrong),
        'a' => 7,
        'f' => 12,
        'n' => 10,
        'r' => 13,
        't' => 9,
        'v' => 11,
        _ if c.is_ascii() && !c.is_ascii_alphanumeric() => u32::from(c),
        _ => return Err(wrong(chars.as_str())),
    };
    Ok((value, chars.as_str()))
}

/// Parses up to three octal digits at the start of `rest`. Returns their value and the remaining text.
fn octal(rest: &str) -> (u32, &str) {
    let length = rest.bytes().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
    let (digits, after) = rest.split_at(length);
    (u32::from_str_radix(digits, 8).unwrap_or(0), after)
}

/// Parses the hexadecimal number of an escape such as `\x41` or `\x{1F600}`. `rest` is the text after `\x`. Returns the
/// number, and the text after the number. If the number is invalid, returns `Err` with the text after the last
/// character that was read.
fn hexadecimal(rest: &str) -> Result<(u32, &str), &str> {
    let mut chars = rest.chars();
    let first = chars.next().ok_or(rest)?;
    if first != '{' {
        let after_first = chars.as_str();
        let second = chars.next().ok_or(after_first)?;
        let value = first.to_digit(16).zip(second.to_digit(16)).map(|(high, low)| high * 16 + low);
        return value.map(|value| (value, chars.as_str())).ok_or(chars.as_str());
    }
    let mut value = None;
    loop {
        let Some(c) = chars.next() else { return Err("") };
        match c.to_digit(16) {
            Some(digit) => {
                let next = value.unwrap_or(0) * 16 + digit;
                if next > u32::from(char::MAX) {
                    return Err(chars.as_str());
                }
                value = Some(next);
            }
            None if c == '}' => return value.map(|value| (value, chars.as_str())).ok_or(chars.as_str()),
            None => return Err(chars.as_str()),
        }
    }
}
