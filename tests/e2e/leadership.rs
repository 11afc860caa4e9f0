//! Several companions: one acts, and another takes over.

use std::time::{Duration, Instant};

use crate::Case;
use crate::companion::{Companion, Options};
use crate::context::Context;
use crate::daemon::PAUSE;
use crate::sentences::eventually;

/// The trials of this file.
pub const CASES: &[Case] = &[
    ("leadership::one_acts_and_another_takes_over_at_once_after_sigterm", another_takes_over_at_once_after_sigterm),
    ("leadership::another_takes_over_within_the_lease_duration_after_a_kill", another_takes_over_after_a_kill),
];

/// The lease duration of [`crate::companion::QUICK`], a retry period, and what a busy machine adds.
const TAKEN_OVER: Duration = Duration::from_millis(1_000 + 200 + 1_500);

fn two(ctx: &Context, ns: &str) -> (Companion, Companion) {
    let options = Options::new(&ctx.cluster, ns);
    let first = options.start(&ctx.cluster);
    eventually(|| first.leads().then_some(()));
    let second = options.start(&ctx.cluster);
    (first, second)
}

/// For how long nobody leads.
fn until_leading(companion: &Companion) -> Duration {
    let start = Instant::now();
    eventually(|| companion.leads().then_some(()));
    start.elapsed()
}

/// Longer than the Lease holds, the same one leads.
fn stays_alone(first: &Companion, second: &Companion) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(3) {
        assert!(first.leads() && !second.leads(), "{}\n{}", first.log(), second.log());
        std::thread::sleep(PAUSE);
    }
}

fn another_takes_over_at_once_after_sigterm(ctx: &Context) {
    let ns = ctx.cluster.namespace("lead");
    let (first, second) = two(ctx, &ns);
    stays_alone(&first, &second);
    first.terminate();
    let waited = until_leading(&second);
    assert!(waited < Duration::from_millis(900), "the lease was given back, and nobody led for {waited:?}");
}

fn another_takes_over_after_a_kill(ctx: &Context) {
    let ns = ctx.cluster.namespace("lead");
    let (first, second) = two(ctx, &ns);
    drop(first);
    let waited = until_leading(&second);
    assert!(waited < TAKEN_OVER, "{waited:?}");
}
