//! Tests of leader election with several controller managers.

use std::time::{Duration, Instant};

use crate::Case;
use crate::context::Context;
use crate::controller_manager::{ControllerManager, Options};
use crate::daemon::PAUSE;
use crate::proxy::{Cut, Proxy};
use crate::sentences::eventually;

/// The tests of this file.
pub const CASES: &[Case] = &[
    ("leadership::one_acts_and_another_takes_over_at_once_after_sigterm", another_takes_over_at_once_after_sigterm),
    ("leadership::another_takes_over_after_a_kill", another_takes_over_after_a_kill),
    ("leadership::one_that_cannot_renew_has_stepped_down_when_another_leads", steps_down_before_another_takes_over),
];

/// Flags that set a longer Lease duration than a test takes. Another replica becomes the leader only if the leader
/// releases the Lease.
const LONG: [&str; 6] = ["--lease-duration", "600", "--renew-deadline", "300", "--retry-period", "0.2"];
/// Flags with which the leader renews the Lease in time, even on a busy machine.
const STEADY: [&str; 6] = ["--lease-duration", "5", "--renew-deadline", "4", "--retry-period", "0.2"];

fn two(ctx: &Context, ns: &str, timing: &[&str]) -> (ControllerManager, ControllerManager) {
    let options = Options { timing, ..Options::new(&ctx.cluster, ns) };
    let first = options.start(&ctx.cluster);
    eventually(|| first.leads().then_some(()));
    let second = options.start(&ctx.cluster);
    (first, second)
}

/// Checks that the first replica is the only leader for longer than the duration of its Lease.
fn stays_alone(first: &ControllerManager, second: &ControllerManager) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(7) {
        assert!(first.leads() && !second.leads(), "{}\n{}", first.log(), second.log());
        std::thread::sleep(PAUSE);
    }
}

fn another_takes_over_at_once_after_sigterm(ctx: &Context) {
    let ns = ctx.cluster.namespace("lead");
    let (first, second) = two(ctx, &ns, &LONG);
    first.terminate();
    eventually(|| second.leads().then_some(()));
}

fn another_takes_over_after_a_kill(ctx: &Context) {
    let ns = ctx.cluster.namespace("lead");
    let (first, second) = two(ctx, &ns, &STEADY);
    stays_alone(&first, &second);
    drop(first);
    eventually(|| second.leads().then_some(()));
}

/// Checks that a leader without a connection to the API server steps down before another replica becomes the leader.
/// This is the worst case, because the first leader still runs, and cannot read who holds the Lease.
fn steps_down_before_another_takes_over(ctx: &Context) {
    let ns = ctx.cluster.namespace("lead");
    let proxy = Proxy::start(&ctx.cluster, usize::MAX, Cut::Before);
    let kubeconfig = proxy.kubeconfig(&ctx.cluster).expect("a file can be written");
    let first = Options { kubeconfig, ..Options::new(&ctx.cluster, &ns) }.start(&ctx.cluster);
    eventually(|| first.leads().then_some(()));
    let second = Options::new(&ctx.cluster, &ns).start(&ctx.cluster);
    proxy.cut();
    eventually(|| second.leads().then_some(()));
    assert!(!first.leads(), "two lead:\n{}\n{}", first.log(), second.log());
    assert!(first.log().contains("the lease was lost: stepping down"), "{}", first.log());
}
