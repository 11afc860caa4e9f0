//! Writes generated tables into pages of the documentation.

use std::fs;
use std::path::Path;

/// Replaces the text between two markers of a page. The path of the page is relative to the repository.
///
/// # Errors
/// Returns an error if the page cannot be read or written, or does not contain the markers.
pub fn replace(page: &str, [begin, end]: [&str; 2], text: &str) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let before = fs::read_to_string(&path).map_err(|error| format!("{page}: {error}"))?;
    let (head, rest) = before.split_once(begin).ok_or_else(|| format!("{page} has no {begin}"))?;
    let (_, tail) = rest.split_once(end).ok_or_else(|| format!("{page} has no {end}"))?;
    fs::write(&path, format!("{head}{begin}\n\n{text}\n{end}{tail}")).map_err(|error| format!("{page}: {error}"))
}
