//! Parses Kubernetes quantities to floating-point numbers, as `resource.ParseQuantity` of `k8s.io/apimachinery` does.

use std::cmp::Ordering;

const FORMAT: &str = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const NUMERIC: &str = "unable to parse numeric part of quantity";
const SUFFIX: &str = "unable to parse quantity's suffix";
/// Number of digits that always fit into an `int64`. apimachinery parses longer numbers with a different algorithm.
const INT64_DIGITS: usize = 18;
/// Number of decimal places of nano (suffix `n`), the smallest unit of a quantity. Smaller fractions are rounded up.
const NANO: i64 = 9;
/// Maximum number of zeros that `nano` appends to the digits of a number to multiply it by a power of ten. The limit
/// saves memory for a quantity such as `1e999999999`. A number that needs more zeros is too large for an `f64`, so the
/// result is infinity.
const BEYOND: usize = 400;
/// The decimal digits of the largest quantity with a binary suffix, such as `Ki`.
const MAX: &[u8] = b"9223372036854775807";

/// Parses a Kubernetes quantity such as `1Gi`, `500m` or `1e3`.
///
/// # Errors
/// If the text is not a quantity. The error is the message of apimachinery.
pub fn parse_quantity(text: &str) -> Result<f64, String> {
    let parts = Parts::of(text).ok_or(FORMAT)?;
    let scale = scale(parts.suffix).ok_or(SUFFIX)?;
    let magnitude = parts.magnitude(scale).ok_or(NUMERIC)?;
    Ok(if parts.is_negative && magnitude != 0.0 { -magnitude } else { magnitude })
}

/// The parts of a Kubernetes quantity such as `-1.5Gi`: sign, digits and suffix.
struct Parts<'t> {
    is_negative: bool,
    whole: &'t str,
    fraction: &'t str,
    suffix: &'t str,
    has_digits: bool,
}

/// The factor of a suffix, as an exponent of ten (`k`, `e3`) or of two (`Ki`).
#[derive(Clone, Copy)]
enum Scale {
    Ten(i64),
    Two(u32),
}

impl<'t> Parts<'t> {
    fn of(text: &'t str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let first = unsigned;
        let unsigned = unsigned.trim_start_matches('0');
        let (whole, rest) = unsigned.split_at(digits(unsigned));
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(after) => after.split_at(digits(after)),
            None => ("", rest),
        };
        let exponent = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let is_sound = digits(exponent) == exponent.len();
        let whole = if whole.is_empty() { "0" } else { whole };
        let has_digits = first.trim_start_matches('.').starts_with(|c: char| c.is_ascii_digit());
        is_sound.then_some(Self { is_negative: text.starts_with('-'), whole, fraction, suffix, has_digits })
    }

    /// Returns the absolute value of the quantity. `scale` is the factor of its suffix. A quantity without digits, such
    /// as `Ki`, is zero. Exception: returns `None` if a quantity without digits has a very large or very small suffix,
    /// such as `Pi` or `e-10`, because apimachinery returns an error for it.
    fn magnitude(&self, scale: Scale) -> Option<f64> {
        let all = [self.whole, self.fraction].concat();
        let fraction = i64::try_from(self.fraction.len()).unwrap_or(i64::MAX);
        let length = i64::try_from(self.whole.len()).unwrap_or(i64::MAX);
        match scale {
            Scale::Ten(power) if all.len() <= INT64_DIGITS && power - fraction >= -NANO => {
                Some(times_ten(&all, power - fraction))
            }
            // As in apimachinery, estimates whether the product fits into an `int64`.
            Scale::Two(shift) if self.fraction.is_empty() && 14 - length - i64::from(shift * 3 / 10) >= 0 => {
                Some(times_ten(&text_of(&doubled(all, shift)), 0))
            }
            _ if !self.has_digits => None,
            Scale::Ten(power) => Some(nano(all.into_bytes(), fraction - power)),
            Scale::Two(shift) => {
                let product = doubled(all, shift);
                Some(match compare(&product, fraction) {
                    Ordering::Greater => times_ten(&text_of(MAX), 0),
                    _ => nano(product, fraction),
                })
            }
        }
    }
}

fn text_of(digits: &[u8]) -> String {
    String::from_utf8_lossy(digits).into_owned()
}

fn doubled(digits: String, times: u32) -> Vec<u8> {
    (0..times).fold(digits.into_bytes(), |number, _| double(&number))
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn scale(suffix: &str) -> Option<Scale> {
    Some(match suffix {
        "" => Scale::Ten(0),
        "n" => Scale::Ten(-9),
        "u" => Scale::Ten(-6),
        "m" => Scale::Ten(-3),
        "k" => Scale::Ten(3),
        "M" => Scale::Ten(6),
        "G" => Scale::Ten(9),
        "T" => Scale::Ten(12),
        "P" => Scale::Ten(15),
        "E" => Scale::Ten(18),
        "Ki" => Scale::Two(10),
        "Mi" => Scale::Two(20),
        "Gi" => Scale::Two(30),
        "Ti" => Scale::Two(40),
        "Pi" => Scale::Two(50),
        "Ei" => Scale::Two(60),
        _ => Scale::Ten(suffix.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?.into()),
    })
}

/// Returns the number `digits` × 10^(−`fraction`), rounded up to a multiple of 10⁻⁹. `digits` contains ASCII digits.
/// `fraction` is the number of digits after the decimal point. If it is negative, the number has that many additional
/// zeros at its end.
fn nano(mut digits: Vec<u8>, fraction: i64) -> f64 {
    if digits.iter().all(|digit| *digit == b'0') {
        return 0.0;
    }
    let surplus = fraction - NANO;
    if surplus <= 0 {
        let missing = usize::try_from(-surplus).unwrap_or(usize::MAX).min(BEYOND);
        digits.extend(std::iter::repeat_n(b'0', missing));
        return times_ten(&text_of(&digits), -NANO);
    }
    let kept = digits.len().saturating_sub(usize::try_from(surplus).unwrap_or(usize::MAX));
    let left = digits.split_off(kept);
    if left.iter().any(|digit| *digit != b'0') {
        increment(&mut digits);
    }
    times_ten(&text_of(&digits), -NANO)
}

fn increment(digits: &mut Vec<u8>) {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
    digits.insert(0, b'1');
}

fn double(digits: &[u8]) -> Vec<u8> {
    let mut carry = 0;
    let mut doubled: Vec<u8> = Vec::with_capacity(digits.len() + 1);
    for digit in digits.iter().rev() {
        let value = (digit - b'0') * 2 + carry;
        doubled.push(b'0' + value % 10);
        carry = value / 10;
    }
    if carry > 0 {
        doubled.push(b'0' + carry);
    }
    doubled.reverse();
    doubled
}

/// Compares a decimal number with [`MAX`]. `digits` are the digits of the number, and `fraction` is how many of them
/// are after the decimal point.
fn compare(digits: &[u8], fraction: i64) -> Ordering {
    let split = digits.len().saturating_sub(usize::try_from(fraction).unwrap_or(usize::MAX));
    let (whole, rest) = digits.split_at(split);
    let start = whole.iter().position(|digit| *digit != b'0').unwrap_or(whole.len());
    let whole = &whole[start..];
    let is_more = rest.iter().any(|digit| *digit != b'0');
    let finer = if is_more { Ordering::Greater } else { Ordering::Equal };
    whole.len().cmp(&MAX.len()).then_with(|| whole.cmp(MAX)).then(finer)
}

/// Returns the number `digits` × 10^`power`. Multiplies two floating-point numbers, as Go does, so that rounding errors
/// are the same as in Go.
fn times_ten(digits: &str, power: i64) -> f64 {
    let base: f64 = if digits.is_empty() { 0.0 } else { digits.parse().unwrap_or(f64::INFINITY) };
    match power {
        0 => base,
        -323..=308 => base * power_of_ten(power),
        _ if power > 0 => base * f64::INFINITY,
        _ => 0.0,
    }
}

fn power_of_ten(power: i64) -> f64 {
    format!("1e{power}").parse().unwrap_or(f64::NAN)
}
