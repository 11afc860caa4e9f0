//! Durations as Landscaper writes them: Go's, or `none`.
//!
//! Source: `Duration.UnmarshalJSON` in Landscaper's `apis/core/v1alpha1/shared_types.go`, and `time.ParseDuration`.

/// Whether a text is a duration.
pub(super) fn is_duration(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    ["none", ""].contains(&text) || unsigned == "0" || (!unsigned.is_empty() && is_sum(unsigned))
}

/// One number with a unit after another.
fn is_sum(mut text: &str) -> bool {
    while !text.is_empty() {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, rest) = text.split_at(digits);
        let unit = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let (unit, rest) = rest.split_at(unit);
        let is_number = number.matches('.').count() <= 1 && number.bytes().any(|byte| byte.is_ascii_digit());
        if !is_number || !["ns", "us", "µs", "μs", "ms", "s", "m", "h"].contains(&unit) {
            return false;
        }
        text = rest;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::is_duration;

    #[test]
    fn reads_what_go_reads() {
        assert!(["none", "0", "5m", "1h30m", "1.5s", "-2ms", ".5h", "10µs"].into_iter().all(is_duration));
        assert!(!["5x", "5", "m", ".s", "1.2.3s", "-", "5 m"].into_iter().any(is_duration));
    }
}
