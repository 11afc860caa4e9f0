//! Calculates the deadline of a webhook call from the query parameter `timeout` of its URL, such as `?timeout=10s`. The
//! API server adds this parameter to every call (C6 in `docs/admission-contract.md`).

use std::time::{Duration, Instant};

use crate::go::duration;

/// The API server's default for `timeoutSeconds`.
const DEFAULT: Duration = Duration::from_secs(10);
/// Maximum timeout of a call: the largest `timeoutSeconds` that a webhook configuration allows.
const MAX_TIMEOUT: Duration = Duration::from_secs(30);
/// Safety margin that is subtracted from the timeout, but never more than half of the timeout. It is needed because the
/// API server rounds its remaining time up to a full second.
const MARGIN: Duration = Duration::from_secs(1);

/// Returns the deadline of a call that began at `began`. `query` is the query of the call's URL, which contains the
/// timeout, such as `timeout=10s`. Without a valid timeout, the default timeout of the API server applies.
pub(super) fn of(began: Instant, query: Option<&str>) -> Instant {
    let timeout = query.and_then(timeout).unwrap_or(DEFAULT).min(MAX_TIMEOUT);
    began + timeout.saturating_sub(MARGIN).max(timeout / 2)
}

fn timeout(query: &str) -> Option<Duration> {
    let text = query.split('&').find_map(|pair| pair.strip_prefix("timeout="))?;
    duration::parse_unsigned(text).filter(|duration| !duration.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(query: &str) -> Duration {
        let began = Instant::now();
        of(began, Some(query)) - began
    }

    #[test]
    fn keeps_a_margin_of_one_second_but_at_most_half() {
        assert_eq!(left("timeout=10s"), Duration::from_secs(9));
        assert_eq!(left("timeout=1s"), Duration::from_millis(500));
        assert_eq!(left("timeout=1.5s"), Duration::from_millis(750));
        assert_eq!(left("a=b&timeout=500ms"), Duration::from_millis(250));
        assert_eq!(left("timeout=0m2s"), Duration::from_secs(1));
    }

    #[test]
    fn uses_the_default_for_invalid_durations() {
        for query in ["", "timeout=", "timeout=5", "timeout=-5s", "timeout=0s", "timeout=soon", "timeout=1e400s"] {
            assert_eq!(left(query), Duration::from_secs(9), "{query}");
        }
        assert_eq!(left("timeout=9999h"), Duration::from_secs(29));
    }
}
