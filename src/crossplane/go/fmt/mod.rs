//! `fmt.Sprintf`, for the values that Crossplane gives to it.
//!
//! It never fails in Go: what is wrong with a format shows in the text, as `%!d(float64=7)`, `%!s(MISSING)` or
//! `%!(EXTRA string=a)`. [`MISTAKE`] is what all of these have in common.
//!
//! Source: the documentation of Go's package fmt, and what Go 1.26 prints: `tests/vectors/crossplane/go_fmt.json`.

mod directive;
mod number;
mod print;
mod text;

use super::Any;
use print::Printer;

/// What stands in a text where the format did not suit the values.
pub const MISTAKE: &str = "%!";
/// The longest text that is made, in bytes; an object that the API server takes is not longer.
pub const MAX_TEXT: usize = 4 << 20;

/// A text would be longer than [`MAX_TEXT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the text would be longer than {MAX_TEXT} bytes")]
pub struct TooLong;

/// The values formatted.
///
/// # Errors
/// [`TooLong`]. Go would make the text.
pub fn sprintf(format: &str, values: &[Any]) -> Result<String, TooLong> {
    Printer::default().printed(format, values)
}

/// The value as `%v` prints it.
///
/// # Errors
/// [`TooLong`].
pub fn plain(value: &Any) -> Result<String, TooLong> {
    sprintf("%v", std::slice::from_ref(value))
}
