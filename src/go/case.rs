//! Go's `strings.ToUpper` and `strings.ToLower`. These functions map each character to exactly one character.
//!
//! Rust differs in three ways. It maps some characters to several characters. It maps a sigma at the end of a word to a
//! different letter. Its Unicode tables are newer, so a few letters have an upper case form that Go does not know.

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

/// Returns Go's upper case form of a letter that Rust maps to several characters. For Greek letters with an iota
/// subscript, this form is another single character. Other letters stay unchanged.
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
