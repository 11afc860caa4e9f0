//! Tests of leader election with several controller managers.

use std::time::{Duration, Instant};

use crate::Case;
use crate::context::Context;
use crate::controller_manager::{ControllerManager, Options};
use crate::daemon::PAUSE;
use crate::proxy::{Proxy, StopPoint};
use crate::sentences::eventually;

/// The tests of this file.
pub const CASES: &[Case] = &[
    (
        "leadership::another_replica_takes_over_immediately_after_sigterm",
        another_replica_takes_over_immediately_after_sigterm,
    ),
    ("leadership::another_replica_takes_over_after_a_kill", another_replica_takes_over_after_a_kill),
    (
        "leadership::a_leader_that_cannot_renew_steps_down_before_another_takes_over",
        steps_down_before_another_takes_over,
    ),
];

/// Flags for a Lease duration that is longer than a test takes. So another replica becomes the leader only if the
/// leader releases the Lease.
const LONG_LEASE: [&str; 6] = ["--lease-duration", "600", "--renew-deadline", "300", "--retry-period", "0.2"];
/// Flags with which the leader renews the Lease in time, even on a busy machine.
const ROBUST_LEASE: [&str; 6] = ["--lease-duration", "5", "--renew-deadline", "4", "--retry-period", "0.2"];

fn start_two_replicas(ctx: &Context, ns: &str, timing: &[&str]) -> (ControllerManager, ControllerManager) {
    let options = Options { timing, ..Options::new(&ctx.cluster, ns) };
    let first = options.start(&ctx.cluster);
    eventually(|| first.is_leader().then_some(()));
    let second = options.start(&ctx.cluster);
    (first, second)
}

/// Checks for seven seconds, longer than the duration of the Lease, that `first` is the leader and `second` is not.
fn assert_stays_only_leader(first: &ControllerManager, second: &ControllerManager) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(7) {
        assert!(first.is_leader() && !second.is_leader(), "{}\n{}", first.log(), second.log());
        std::thread::sleep(PAUSE);
    }
}

fn another_replica_takes_over_immediately_after_sigterm(ctx: &Context) {
    let ns = ctx.cluster.namespace("lead");
    let (first, second) = start_two_replicas(ctx, &ns, &LONG_LEASE);
    first.terminate();
    eventually(|| second.is_leader().then_some(()));
}

fn another_replica_takes_over_after_a_kill(ctx: &Context) {
    let ns = ctx.cluster.namespace("lead");
    let (first, second) = start_two_replicas(ctx, &ns, &ROBUST_LEASE);
    assert_stays_only_leader(&first, &second);
    drop(first);
    eventually(|| second.is_leader().then_some(()));
}

/// Checks that a leader without a connection to the API server steps down before another replica becomes the leader.
/// This is the worst case, because the old leader still runs, but cannot read who holds the Lease.
fn steps_down_before_another_takes_over(ctx: &Context) {
    let ns = ctx.cluster.namespace("lead");
    let proxy = Proxy::start(&ctx.cluster, usize::MAX, StopPoint::Before);
    let kubeconfig = proxy.kubeconfig(&ctx.cluster).expect("a file can be written");
    let first = Options { kubeconfig, ..Options::new(&ctx.cluster, &ns) }.start(&ctx.cluster);
    eventually(|| first.is_leader().then_some(()));
    let second = Options::new(&ctx.cluster, &ns).start(&ctx.cluster);
    proxy.stop();
    eventually(|| second.is_leader().then_some(()));
    assert!(!first.is_leader(), "two replicas are leaders:\n{}\n{}", first.log(), second.log());
    assert!(first.log().contains("the lease was lost: stepping down"), "{}", first.log());
}
