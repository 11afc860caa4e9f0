//! `strings.ToUpper` and `strings.ToLower`, which map each character to one character.
//!
//! Rust maps some characters to several, and a sigma at the end of a word to another letter; Go does neither. Rust's
//! Unicode tables are newer, so a few letters have an upper case form that Go does not know.

/// Converts to upper case, like `strings.ToUpper`.
pub fn to_upper(text: &str) -> String {
    text.chars().map(upper).collect()
}

/// Converts to lower case, like `strings.ToLower`.
pub fn to_lower(text: &str) -> String {
    text.chars().map(lower).collect()
}

fn upper(c: char) -> char {
    let mut mapped = c.to_uppercase();
    match (mapped.next(), mapped.next()) {
        (Some(only), None) => only,
        _ => single_upper(c),
    }
}

/// Returns the upper case form in Go of a letter that Rust maps to several characters. Greek letters with an iota
/// subscript have a form of one character; other letters stay unchanged.
fn single_upper(c: char) -> char {
    match c {
        '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => {
            char::from_u32(u32::from(c) + 8).unwrap_or(c)
        }
        '\u{1fb3}' => '\u{1fbc}',
        '\u{1fc3}' => '\u{1fcc}',
        '\u{1ff3}' => '\u{1ffc}',
        _ => c,
    }
}

fn lower(c: char) -> char {
    // In Rust, only the capital I with a dot maps to two characters.
    if c == '\u{130}' { 'i' } else { c.to_lowercase().next().unwrap_or(c) }
}
