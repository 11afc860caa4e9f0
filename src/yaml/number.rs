//! Parses and formats numbers as Go's `strconv` does.

use std::borrow::Cow;

use super::scalar_value::Scalar;
use crate::go::{format_float, format_float32};

/// Minimum absolute value of the whole numbers that Go writes into JSON with an exponent.
const JSON_EXPONENT: f64 = 1e21;

/// Parses a plain scalar that begins with a digit, a sign or a dot; `None` if it is not a number.
pub(super) fn read(text: &str) -> Option<Scalar<'static>> {
    match text {
        ".nan" | ".NaN" | ".NAN" => return Some(Scalar::Float(f64::NAN)),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Some(Scalar::Float(f64::INFINITY)),
        "-.inf" | "-.Inf" | "-.INF" => return Some(Scalar::Float(f64::NEG_INFINITY)),
        _ => {}
    }
    if text.starts_with('.') && !separates_digits(text) {
        return None;
    }
    let digits = if text.contains('_') { Cow::Owned(text.replace('_', "")) } else { Cow::Borrowed(text) };
    integer(&digits).or_else(|| float(&digits)).or_else(|| signed_binary(&digits))
}

/// Returns whether every `_` in `text` is between two digits. `text` is a number that begins with a dot. go-yaml passes
/// such a number to Go's number parser without removing the `_`, and Go accepts a `_` only between digits.
fn separates_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    (0..bytes.len()).filter(|at| bytes[*at] == b'_').all(|at| digit(at.checked_sub(1)) && digit(Some(at + 1)))
}

/// Parses an integer as Go's `strconv.ParseInt(text, 0, 64)` does. If the integer is too large, parses it as
/// `ParseUint` does, which accepts no sign.
fn integer(text: &str) -> Option<Scalar<'static>> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let magnitude = magnitude(unsigned)?;
    if text.starts_with('-') {
        return 0i64.checked_sub_unsigned(magnitude).map(Scalar::Int);
    }
    match i64::try_from(magnitude) {
        Ok(int) => Some(Scalar::Int(int)),
        Err(_) => (unsigned.len() == text.len()).then_some(Scalar::Uint(magnitude)),
    }
}

fn magnitude(text: &str) -> Option<u64> {
    let (radix, digits) = match text.as_bytes() {
        [b'0'] => (10, text),
        [b'0', b'x' | b'X', _, ..] => (16, &text[2..]),
        [b'0', b'o' | b'O', _, ..] => (8, &text[2..]),
        [b'0', b'b' | b'B', _, ..] => (2, &text[2..]),
        [b'0', ..] => (8, &text[1..]),
        _ => (10, text),
    };
    // `from_str_radix` would accept a second sign.
    if digits.starts_with(['+', '-']) { None } else { u64::from_str_radix(digits, radix).ok() }
}

/// Parses a binary number, as go-yaml does. In this format, a sign may follow the prefix `0b`.
fn signed_binary(text: &str) -> Option<Scalar<'static>> {
    i64::from_str_radix(text.strip_prefix("0b")?, 2).ok().map(Scalar::Int)
}

/// Parses a floating-point number. `None` if the text does not have the form of such a number, or if the number is too
/// large for a 64-bit float.
fn float(text: &str) -> Option<Scalar<'static>> {
    if !looks_like_float(text) {
        return None;
    }
    text.parse().ok().filter(|float: &f64| float.is_finite()).map(Scalar::Float)
}

/// Returns whether a text matches `^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`.
fn looks_like_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.strip_prefix(['+', '-']).unwrap_or(exponent)),
        None => (unsigned, "0"),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    digits(whole)
        && digits(fraction)
        && digits(exponent)
        && !exponent.is_empty()
        && !(whole.is_empty() && fraction.is_empty())
        && !mantissa.is_empty()
}

/// Returns whether a text begins like a date. go-yaml also checks that the day exists, but this function does not.
pub(super) fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 8 && bytes[4] == b'-' && bytes[..4].iter().all(u8::is_ascii_digit)
}

/// Returns the integer that Go writes into JSON for a float without a fraction. `None` if the float has a fraction, if
/// Go writes it with an exponent, or if the integer does not fit into an `i64`.
pub(super) fn as_integer(float: f64) -> Option<i64> {
    // Go prints the shortest digits and zeros, which need not be the exact value.
    (float.fract() == 0.0 && float.abs() < JSON_EXPONENT).then(|| format_float(float, 'f', None).parse().ok())?
}

/// Formats a float that is a mapping key, as `strconv.FormatFloat(float, 'g', -1, 32)` does, but with YAML's names for
/// infinity and NaN.
pub(super) fn float_key(float: f64) -> String {
    let float = float as f32;
    match float {
        _ if float.is_finite() => format_float32(float),
        _ if float.is_nan() => ".nan".to_owned(),
        _ => if float > 0.0 { ".inf" } else { "-.inf" }.to_owned(),
    }
}
