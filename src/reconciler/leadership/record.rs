//! What a Lease says, and what is written into it. Pure: clocks are handed in.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

/// Whose a Lease is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It says our name.
    Mine,
    /// Nobody's, or it was not renewed for its duration.
    Free,
    /// Another's.
    Others,
}

/// A Lease as it was first seen in its present state. Others' clocks do not count, only how long it stays the same.
pub(super) struct Seen {
    version: Option<String>,
    at: Instant,
}

impl Seen {
    /// Looks at a Lease, and remembers since when it is as it is.
    pub(super) fn look(seen: &mut Option<Self>, lease: &Lease, identity: &str, now: Instant) -> Standing {
        let version = &lease.metadata.resource_version;
        let at = match seen {
            Some(seen) if seen.version == *version => seen.at,
            _ => now,
        };
        *seen = Some(Self { version: version.clone(), at });
        let nothing = LeaseSpec::default();
        let spec = lease.spec.as_ref().unwrap_or(&nothing);
        match spec.holder_identity.as_deref().unwrap_or_default() {
            "" => Standing::Free,
            holder if holder == identity => Standing::Mine,
            _ if now.saturating_duration_since(at) >= duration(spec) => Standing::Free,
            _ => Standing::Others,
        }
    }
}

fn duration(spec: &LeaseSpec) -> Duration {
    let seconds = spec.lease_duration_seconds.unwrap_or_default();
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}

/// A Lease where there is none.
pub(super) fn first(name: &str, identity: &str, duration: Duration, now: Timestamp) -> Lease {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let mut lease = Lease { metadata, spec: None };
    take(&mut lease, identity, duration, now);
    lease
}

/// Takes a Lease.
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

/// Renews a Lease.
pub(super) fn renew(lease: &mut Lease, now: Timestamp) {
    lease.spec.get_or_insert_default().renew_time = Some(MicroTime(now));
}

/// Gives a Lease back: nobody's, and short, for those who only look at its times.
pub(super) fn give_back(lease: &mut Lease, now: Timestamp) {
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
    fn a_lease_is_free_when_it_stays_the_same_for_its_duration() {
        let (mut seen, begin) = (None, Instant::now());
        let mut look =
            |lease: &Lease, seconds| Seen::look(&mut seen, lease, "me", begin + Duration::from_secs(seconds));
        assert_eq!(look(&lease("other", "1"), 0), Standing::Others);
        assert_eq!(look(&lease("other", "1"), 14), Standing::Others);
        assert_eq!(look(&lease("other", "2"), 15), Standing::Others);
        assert_eq!(look(&lease("other", "2"), 29), Standing::Others);
        assert_eq!(look(&lease("other", "2"), 30), Standing::Free);
        assert_eq!(look(&lease("me", "3"), 31), Standing::Mine);
    }

    #[test]
    fn a_lease_that_was_given_back_is_free_at_once_and_its_hands_are_counted() {
        let mut taken = lease("other", "1");
        give_back(&mut taken, Timestamp::UNIX_EPOCH);
        assert_eq!(Seen::look(&mut None, &taken, "me", Instant::now()), Standing::Free);
        take(&mut taken, "me", Duration::from_secs(15), Timestamp::UNIX_EPOCH);
        let spec = taken.spec.unwrap();
        assert_eq!((spec.lease_transitions, spec.holder_identity.as_deref()), (Some(1), Some("me")));
        assert_eq!(spec.lease_duration_seconds, Some(15));
    }
}
