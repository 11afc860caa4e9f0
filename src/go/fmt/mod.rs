//! Reimplements Go's `fmt.Sprintf` for the values that Crossplane passes to it.
//!
//! In Go, `Sprintf` never fails. It writes errors into the text, such as `%!d(float64=7)` or `%!s(MISSING)`. Each of
//! these errors contains [`MISTAKE`].
//!
//! Source: the documentation of Go's package fmt, and the output of Go 1.26 in `tests/vectors/go/go_fmt.json`.

mod directive;
mod number;
mod print;
mod text;

use super::Any;
use print::Printer;

/// The prefix of each error that Go's `fmt.Sprintf` writes into its result, such as `%!d(float64=7)`.
pub const MISTAKE: &str = "%!";
/// Maximum length of a formatted text in bytes. Longer texts are not useful, because the API server rejects objects of
/// this size.
pub const MAX_TEXT: usize = 4 << 20;

/// The error when a formatted text would be longer than [`MAX_TEXT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the text would be longer than {MAX_TEXT} bytes")]
pub struct TooLong;

/// Formats values like Go's `fmt.Sprintf`.
///
/// # Errors
/// [`TooLong`], if the text is longer than [`MAX_TEXT`]. Go has no such limit.
pub fn sprintf(format: &str, values: &[Any]) -> Result<String, TooLong> {
    Printer::default().printed(format, values)
}

/// Formats a value in the default format, as the verb `%v` of Go does.
///
/// # Errors
/// [`TooLong`] if the text exceeds `MAX_TEXT`.
pub fn plain(value: &Any) -> Result<String, TooLong> {
    sprintf("%v", std::slice::from_ref(value))
}
