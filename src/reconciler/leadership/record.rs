//! Reads and changes the fields of a Lease. No function in this module reads a clock: callers pass the current time.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

/// The holder of a Lease: this replica, another replica, or nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// This replica holds the Lease.
    Mine,
    /// Nobody holds the Lease, or the holder has not renewed it within the lease duration.
    Free,
    /// Another replica holds the Lease.
    Others,
}

/// A version of a Lease, and the time at which this process first saw it. The expiry of the Lease is computed from this
/// time, and does not depend on the clocks of other processes.
pub(super) struct Seen {
    version: Option<String>,
    at: Instant,
}

impl Seen {
    /// Returns who holds a Lease. `identity` is the identity of this replica, and `now` is the current time.
    ///
    /// `seen` contains the `resourceVersion` of the Lease in the last call, and the time at which this replica first
    /// saw this `resourceVersion`. The function updates `seen`.
    pub(super) fn examine(seen: &mut Option<Self>, lease: &Lease, identity: &str, now: Instant) -> Standing {
        let version = &lease.metadata.resource_version;
        let at = match seen {
            Some(seen) if seen.version == *version => seen.at,
            _ => now,
        };
        *seen = Some(Self { version: version.clone(), at });
        let nothing = LeaseSpec::default();
        let spec = lease.spec.as_ref().unwrap_or(&nothing);
        match holder(lease) {
            "" => Standing::Free,
            holder if holder == identity => Standing::Mine,
            _ if now.saturating_duration_since(at) >= duration(spec) => Standing::Free,
            _ => Standing::Others,
        }
    }
}

/// Returns the identity of the holder of a Lease. Empty if nobody holds the Lease.
pub(super) fn holder(lease: &Lease) -> &str {
    lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
}

fn duration(spec: &LeaseSpec) -> Duration {
    let seconds = spec.lease_duration_seconds.unwrap_or_default();
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}

/// Returns a new Lease that `identity` holds.
pub(super) fn first(name: &str, identity: &str, duration: Duration, now: Timestamp) -> Lease {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let mut lease = Lease { metadata, spec: None };
    take(&mut lease, identity, duration, now);
    lease
}

/// Makes `identity` the holder of a Lease.
pub(super) fn take(lease: &mut Lease, identity: &str, duration: Duration, now: Timestamp) {
    let spec = lease.spec.get_or_insert_default();
    let changes_hands = spec.holder_identity.as_deref() != Some(identity);
    let transitions = spec.lease_transitions.unwrap_or_default();
    spec.lease_transitions = Some(transitions.saturating_add(i32::from(changes_hands && spec.acquire_time.is_some())));
    spec.holder_identity = Some(identity.to_owned());
    spec.lease_duration_seconds = Some(i32::try_from(duration.as_secs()).unwrap_or(i32::MAX));
    spec.acquire_time = Some(MicroTime(now));
    spec.renew_time = Some(MicroTime(now));
}

/// Sets the renew time of a Lease to `now`.
pub(super) fn renew(lease: &mut Lease, now: Timestamp) {
    lease.spec.get_or_insert_default().renew_time = Some(MicroTime(now));
}

/// Removes the holder from a Lease, and sets the duration of the Lease to one second. Some clients ignore that the
/// holder is empty, and wait until the Lease expires. Because of the short duration, they can acquire the Lease after
/// one second.
pub(super) fn released(lease: &mut Lease, now: Timestamp) {
    let spec = lease.spec.get_or_insert_default();
    spec.holder_identity = Some(String::new());
    spec.lease_duration_seconds = Some(1);
    spec.acquire_time = Some(MicroTime(now));
    spec.renew_time = Some(MicroTime(now));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(holder: &str, version: &str) -> Lease {
        let mut lease = first("companion", holder, Duration::from_secs(15), Timestamp::UNIX_EPOCH);
        lease.metadata.resource_version = Some(version.to_owned());
        lease
    }

    #[test]
    fn an_unchanged_lease_is_free_after_its_duration() {
        let (mut seen, begin) = (None, Instant::now());
        let mut examine =
            |lease: &Lease, seconds| Seen::examine(&mut seen, lease, "me", begin + Duration::from_secs(seconds));
        assert_eq!(examine(&lease("other", "1"), 0), Standing::Others);
        assert_eq!(examine(&lease("other", "1"), 14), Standing::Others);
        assert_eq!(examine(&lease("other", "2"), 15), Standing::Others);
        assert_eq!(examine(&lease("other", "2"), 29), Standing::Others);
        assert_eq!(examine(&lease("other", "2"), 30), Standing::Free);
        assert_eq!(examine(&lease("me", "3"), 31), Standing::Mine);
    }

    #[test]
    fn a_released_lease_is_free_at_once_and_counts_transitions() {
        let mut taken = lease("other", "1");
        released(&mut taken, Timestamp::UNIX_EPOCH);
        assert_eq!(Seen::examine(&mut None, &taken, "me", Instant::now()), Standing::Free);
        take(&mut taken, "me", Duration::from_secs(15), Timestamp::UNIX_EPOCH);
        let spec = taken.spec.unwrap();
        assert_eq!((spec.lease_transitions, spec.holder_identity.as_deref()), (Some(1), Some("me")));
        assert_eq!(spec.lease_duration_seconds, Some(15));
    }
}
