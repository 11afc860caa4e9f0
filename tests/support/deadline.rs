//! The timeout of tests that wait for an event.
#![allow(unreachable_pub, reason = "a test binary has no other crate to reach")]

use std::time::Duration;

/// Environment variable with a factor for the timeout, for very slow or busy machines.
const VARIABLE: &str = "PORTCULLIS_TEST_DEADLINE_FACTOR";

/// Returns the timeout for an expected event. It is long, because an event that takes milliseconds on an idle machine
/// takes seconds on a machine with thirty processes per core. Only a failing test waits that long.
pub fn deadline() -> Duration {
    let factor = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    Duration::from_secs(60).saturating_mul(factor)
}
