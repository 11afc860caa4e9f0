//! Parses and formats durations as Go's `time.ParseDuration` and `time.Duration.String` do. Durations are in
//! nanoseconds.

use std::time::Duration;

const SECOND: u64 = 1_000_000_000;
/// The maximum magnitude of a duration, in nanoseconds. Go stores a duration as an `int64`, and this is the magnitude
/// of the smallest `int64`.
const MAX_MAGNITUDE: u64 = 1 << 63;

/// The units of Go durations, with their lengths in nanoseconds. The microsecond has three spellings, because Unicode
/// has two micro signs.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3600 * SECOND),
];

/// Parses a duration in Go's format, such as `1h30m` or `-1.5s`, and returns it in nanoseconds. Returns `None` if the
/// text is invalid, or if the number of nanoseconds does not fit into an `i64` (about 292 years).
pub fn parse(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let magnitude = if unsigned == "0" { 0 } else { sum(unsigned)? };
    match text.starts_with('-') {
        true => 0_i64.checked_sub_unsigned(magnitude),
        false => i64::try_from(magnitude).ok(),
    }
}

/// Parses a duration such as `1h30m`. `None` if the duration is negative or invalid.
pub fn parse_unsigned(text: &str) -> Option<Duration> {
    parse(text).and_then(|nanoseconds| u64::try_from(nanoseconds).ok()).map(Duration::from_nanos)
}

/// Parses numbers with units, such as `1h30m`, and returns their sum in nanoseconds. `None` if the text is invalid, or
/// if the sum is too large.
fn sum(mut text: &str) -> Option<u64> {
    let mut total: u64 = 0;
    if text.is_empty() {
        return None;
    }
    while !text.is_empty() {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, rest) = text.split_at(digits);
        let end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let (unit, rest) = rest.split_at(end);
        let (_, unit) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(part(number, unit)?).filter(|total| *total <= MAX_MAGNITUDE)?;
        text = rest;
    }
    Some(total)
}

/// Converts a decimal number to nanoseconds. `unit` is the number of nanoseconds in the unit of the number. Fractions
/// of a nanosecond are truncated. Returns `None` if the number is invalid or too large.
fn part(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let whole = whole.checked_mul(unit).filter(|whole| *whole <= MAX_MAGNITUDE)?;
    whole.checked_add(fraction_of(fraction, unit)).filter(|part| *part <= MAX_MAGNITUDE)
}

/// Converts a decimal fraction of a unit to nanoseconds. `digits` are the digits after the decimal point, and `unit` is
/// the length of the unit in nanoseconds. Go computes the result with floating-point numbers, so its last nanosecond
/// may be imprecise. This function returns the same result as Go.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "those of Go")]
fn fraction_of(digits: &str, unit: u64) -> u64 {
    let (mut numerator, mut scale) = (0_u64, 1.0);
    for digit in digits.bytes() {
        let next = numerator * 10 + u64::from(digit - b'0');
        if next > MAX_MAGNITUDE {
            break;
        }
        numerator = next;
        scale *= 10.0;
        if numerator > (MAX_MAGNITUDE - 1) / 10 {
            break;
        }
    }
    (numerator as f64 * (unit as f64 / scale)) as u64
}

/// Formats nanoseconds as a Go duration, such as `1h30m0s`, `1.5ms` or `0s`.
pub fn format(nanoseconds: i64) -> String {
    let size = nanoseconds.unsigned_abs();
    let text = match size {
        0 => return "0s".to_owned(),
        1..1_000 => format!("{size}ns"),
        1_000..1_000_000 => format!("{}µs", decimal(size, 1_000)),
        1_000_000..SECOND => format!("{}ms", decimal(size, 1_000_000)),
        _ => {
            let seconds = decimal(size % (60 * SECOND), SECOND);
            match (size / (3600 * SECOND), size / (60 * SECOND) % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    };
    if nanoseconds < 0 { format!("-{text}") } else { text }
}

/// Formats the quotient of `size` and `unit` as a decimal number without trailing zeros. `unit` is a power of ten.
fn decimal(size: u64, unit: u64) -> String {
    let places = unit.ilog10() as usize;
    let text = format!("{}.{:0places$}", size / unit, size % unit);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parses_formatted_durations(nanos: i64) {
            // Go's own arithmetic loses a nanosecond in fractions of seconds in rare cases, never more.
            let parsed = parse(&format(nanos)).unwrap();
            prop_assert!(nanos.abs_diff(parsed) <= 1, "{nanos} {parsed}");
        }

        #[test]
        fn accepts_any_text(any in "[0-9.hmsnuµ+-]{0,40}") {
            let _ = parse(&any);
        }
    }
}
