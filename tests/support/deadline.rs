//! The deadline of tests.
#![allow(unreachable_pub, reason = "a test binary has no other crate to reach")]

use std::time::Duration;

/// Multiplies the deadline, for very slow or busy machines.
const VARIABLE: &str = "PORTCULLIS_TEST_DEADLINE_FACTOR";

/// Returns the deadline for an expected event. Milliseconds on an idle machine become seconds with thirty processes per
/// core; only a failure takes a minute.
pub fn deadline() -> Duration {
    let factor = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    Duration::from_secs(60).saturating_mul(factor)
}
