//! How long tests wait.
#![allow(unreachable_pub, reason = "a test binary has no other crate to reach")]

use std::time::Duration;

/// Multiplies the deadline: for machines that are slower or busier than any known.
const VARIABLE: &str = "PORTCULLIS_TEST_PATIENCE";

/// How long a test waits for something that has to happen. What takes milliseconds on an idle machine takes seconds on one
/// with thirty processes for each core; nothing but a failure takes a minute.
pub fn deadline() -> Duration {
    let factor = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    Duration::from_secs(60).saturating_mul(factor)
}
