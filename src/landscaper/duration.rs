//! Parses and formats durations as Landscaper does: in Go's format, such as `1h30m`, or as `none` for zero.
//!
//! Source: `Duration` in Landscaper's `apis/core/v1alpha1/shared_types.go`. The results of running this Go code on
//! example texts are recorded in `tests/vectors/landscaper/phases.json`.

use crate::go::duration;

/// The text for a duration of zero in Landscaper's format.
const NONE: &str = "none";

/// Reports whether a text is a duration in Landscaper's format, such as `1h30m` or `none`.
pub(super) fn is_duration(text: &str) -> bool {
    nanoseconds(text).is_some()
}

/// Parses a duration in Landscaper's format into nanoseconds. The text `none` results in 0. Returns `None` if the text
/// is invalid, or exceeds Go's maximum of 292 years.
pub fn nanoseconds(text: &str) -> Option<i64> {
    if text == NONE { Some(0) } else { duration::parse(text) }
}

/// Formats nanoseconds as Landscaper does, such as `1h30m0s`; zero is `none`.
pub fn text(nanoseconds: i64) -> String {
    if nanoseconds == 0 { NONE.to_owned() } else { duration::format(nanoseconds) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_the_durations_of_go_and_none() {
        assert!(["none", "0", "5m", "1h30m", "1.5s", "-2ms", ".5h", "10µs", "-0"].into_iter().all(is_duration));
        assert!(!["5x", "5", "m", ".s", "1.2.3s", "-", "5 m", "", "None", "2562048h"].into_iter().any(is_duration));
        assert_eq!(text(0), "none");
    }
}
