//! Parses booleans and numbers as Go's `strconv` does, with Go's error messages.

use super::quote;

/// Returns Go's error message for a text that Go's function `function` cannot parse. `why` is the reason.
fn wrong(function: &str, text: &str, why: &str) -> String {
    format!("strconv.{function}: parsing {}: {why}", quote(text))
}

const SYNTAX: &str = "invalid syntax";
const RANGE: &str = "value out of range";

/// Parses a boolean, like `strconv.ParseBool`.
///
/// # Errors
/// If the text is not a boolean. The error is Go's message.
pub fn parse_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(wrong("ParseBool", text, SYNTAX)),
    }
}

/// Parses an integer, like `strconv.ParseInt(text, 10, 64)`.
///
/// # Errors
/// If the text is not an integer, or if the integer is out of range. The error is Go's message.
pub fn parse_int(text: &str) -> Result<i64, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong("ParseInt", text, SYNTAX));
    }
    text.parse().map_err(|_| wrong("ParseInt", text, RANGE))
}

/// Parses a number, like `strconv.ParseFloat(text, 64)`. The text is a decimal or hexadecimal number, or one of the
/// words `inf`, `infinity` and `nan` in any case.
///
/// # Errors
/// If the text is not a number, or if the number is out of range. The error is Go's message.
pub fn parse_float(text: &str) -> Result<f64, String> {
    let (sign, number) = match text.strip_prefix('-') {
        Some(number) => (-1.0, number),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let is_signed = number.len() < text.len();
    match number.to_ascii_lowercase().as_str() {
        "inf" | "infinity" => return Ok(sign * f64::INFINITY),
        "nan" if !is_signed => return Ok(f64::NAN),
        _ => {}
    }
    let plain = number.replace('_', "");
    let value = match plain.strip_prefix("0x").or_else(|| plain.strip_prefix("0X")) {
        Some(digits) => hexadecimal(digits),
        None => decimal(&plain),
    };
    let value = value.filter(|_| has_sound_underscores(number));
    let value = value.ok_or_else(|| wrong("ParseFloat", text, SYNTAX))?;
    if value.is_infinite() { Err(wrong("ParseFloat", text, RANGE)) } else { Ok(sign * value) }
}

/// Parses a decimal number. Rust accepts the same numbers as Go, but different words for infinity and NaN. This
/// function rejects all such words; the caller parses those that Go accepts. `None` if the text is not a number.
fn decimal(number: &str) -> Option<f64> {
    let is_number = number.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    number.parse().ok().filter(|_| is_number)
}

/// Returns whether every underscore is between digits, or between `0x` and a digit.
fn has_sound_underscores(number: &str) -> bool {
    let (digits, is_hexadecimal) = match number.get(..2) {
        Some("0x" | "0X") => (&number[1..], true),
        _ => (number, false),
    };
    let is_digit = |at: usize, c: Option<char>| {
        c.is_some_and(|c| c.is_ascii_digit() || (is_hexadecimal && (at == 0 || c.is_ascii_hexdigit())))
    };
    let chars: Vec<char> = digits.chars().collect();
    let around = |at: usize| {
        at > 0 && is_digit(at - 1, chars.get(at - 1).copied()) && is_digit(at + 1, chars.get(at + 1).copied())
    };
    (0..chars.len()).filter(|&at| chars[at] == '_').all(around)
}

/// Parses the part of a hexadecimal float after `0x`, such as `1.8p3`. The binary exponent is required. `None` if the
/// text is invalid.
fn hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let exponent_digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let is_exponent = !exponent_digits.is_empty() && exponent_digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || !is_exponent {
        return None;
    }
    let beyond = if exponent.starts_with('-') { -BEYOND } else { BEYOND };
    let exponent = exponent.parse::<i64>().unwrap_or(beyond).clamp(-BEYOND, BEYOND);
    Some(assembled(digits.as_bytes(), exponent - 4 * i64::try_from(fraction.len()).ok()?))
}

/// Maximum absolute value of a binary exponent. A larger exponent is replaced with this limit. The result stays the
/// same, infinity or 0, because only a mantissa with about a billion digits could balance such an exponent.
const BEYOND: i64 = 1 << 32;

/// Returns the value of hexadecimal digits times two to the power of `exponent`. The value is rounded once, to the
/// nearest float. If two floats are equally near, the even one is used.
fn assembled(digits: &[u8], mut exponent: i64) -> f64 {
    let mut mantissa: u64 = 0;
    let mut is_inexact = false;
    for digit in digits {
        let value = u64::from(char::from(*digit).to_digit(16).unwrap_or(0));
        if mantissa >> 58 == 0 {
            mantissa = mantissa << 4 | value;
        } else {
            is_inexact |= value != 0;
            exponent += 4;
        }
    }
    if mantissa == 0 {
        return 0.0;
    }
    // The leading bit goes to bit 61, which leaves bits for rounding; the last bit records truncated digits.
    while mantissa >> 61 == 0 {
        mantissa <<= 1;
        exponent -= 1;
    }
    // A number that is too small for a full mantissa has fewer bits.
    let lowest = -1074 - exponent;
    let cut = u32::try_from(lowest.clamp(61 - 52, 63)).unwrap_or(63);
    let half = 1u64 << (cut - 1);
    let (mut kept, left) = (mantissa >> cut, mantissa & ((1 << cut) - 1));
    if left > half || (left == half && (is_inexact || kept & 1 == 1)) {
        kept += 1;
    }
    scaled(kept, exponent + i64::from(cut))
}

/// Multiplies an integer of at most 53 bits by a power of two. The result is exact, unless it is out of range.
fn scaled(mantissa: u64, exponent: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "it has at most 53 bits")]
    let mut value = mantissa as f64;
    let mut left = exponent;
    while left > 0 && value.is_finite() {
        let step = left.min(1000);
        value *= 2f64.powi(i32::try_from(step).unwrap_or(0));
        left -= step;
    }
    while left < 0 && value != 0.0 {
        let step = (-left).min(1000);
        value *= 2f64.powi(-i32::try_from(step).unwrap_or(0));
        left += step;
    }
    value
}
