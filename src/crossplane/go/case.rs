//! `strings.ToUpper` and `strings.ToLower`: each character by itself, and one for one.
//!
//! Rust maps some characters to several, and a sigma at the end of a word to another letter; Go does neither. Rust's
//! tables are of a newer Unicode, in which a few letters have got a capital that they did not have before.

/// `strings.ToUpper`.
pub fn to_upper(text: &str) -> String {
    text.chars().map(upper).collect()
}

/// `strings.ToLower`.
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

/// The one capital of a letter whose capital form is written as several: the Greek ones with an iota have one.
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
    // Only the dotted capital I becomes two characters.
    if c == '\u{130}' { 'i' } else { c.to_lowercase().next().unwrap_or(c) }
}
