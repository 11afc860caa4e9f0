//! Durations in Landscaper's format: Go's, or `none`.
//!
//! Source: `Duration` in Landscaper's `apis/core/v1alpha1/shared_types.go`, and `time.ParseDuration` and
//! `Duration.String`; executed cases in `tests/vectors/landscaper/phases.json`.

const SECOND: i128 = 1_000_000_000;

/// Go's units in nanoseconds. Unicode has two micro signs.
const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3600 * SECOND),
];

/// Reports whether a text is a duration.
pub(super) fn is_duration(text: &str) -> bool {
    nanoseconds(text).is_some()
}

/// Parses a duration into nanoseconds, 0 for `none`. Returns `None` for an invalid text, or one beyond Go's 292 years.
pub fn nanoseconds(text: &str) -> Option<i64> {
    if text == "none" {
        return Some(0);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sum = if unsigned == "0" { 0 } else { sum(unsigned)? };
    let signed = if text.starts_with('-') { -sum } else { sum };
    i64::try_from(signed).ok()
}

/// Adds up a sequence of numbers with units, such as `1h30m`.
fn sum(mut text: &str) -> Option<i128> {
    let mut total: i128 = 0;
    if text.is_empty() {
        return None;
    }
    while !text.is_empty() {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, rest) = text.split_at(digits);
        let end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let (unit, rest) = rest.split_at(end);
        let (_, unit) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(part(number, unit)?)?;
        text = rest;
    }
    Some(total)
}

/// Multiplies a decimal number by a unit, and drops fractions of a nanosecond.
fn part(number: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let (mut numerator, mut denominator) = (0, 1);
    // An hour has 13 digits in nanoseconds, so digits after the 18th have no effect.
    for digit in fraction.bytes().take(18) {
        numerator = numerator * 10 + i128::from(digit - b'0');
        denominator *= 10;
    }
    i128::from(whole).checked_mul(unit)?.checked_add(numerator * unit / denominator)
}

/// Formats nanoseconds as Landscaper does.
pub fn text(nanoseconds: i64) -> String {
    let size = i128::from(nanoseconds).abs();
    let text = match size {
        0 => return "none".to_owned(),
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

/// Formats `size` as a decimal number of units, without trailing zeros.
fn decimal(size: i128, unit: i128) -> String {
    let places = unit.ilog10() as usize;
    let text = format!("{}.{:0places$}", size / unit, size % unit);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn accepts_the_durations_of_go() {
        assert!(["none", "0", "5m", "1h30m", "1.5s", "-2ms", ".5h", "10µs", "-0"].into_iter().all(is_duration));
        assert!(!["5x", "5", "m", ".s", "1.2.3s", "-", "5 m", "", "None", "2562048h"].into_iter().any(is_duration));
    }

    proptest! {
        #[test]
        fn parses_what_it_formats(nanos: i64) {
            prop_assert_eq!(nanoseconds(&text(nanos)), Some(nanos));
        }

        #[test]
        fn never_panics(any in "[0-9.hmsnuµ+-]{0,40}") {
            let _ = nanoseconds(&any);
        }
    }
}
