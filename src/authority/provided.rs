//! Computes the steps of a replica with a provided certificate. Such a certificate is issued outside Portcullis, for
//! example by cert-manager, and is mounted into the replica.
//!
//! API servers trust a replica only if the caBundles of the webhook configurations contain the CA of its certificate.
//! So the replica adds this CA to the caBundles. It also records the CA in the Secret that stores a self-managed CA, so
//! all replicas agree on the caBundles. They also agree while provided certificates replace self-managed ones, or the
//! other way round.
//!
//! If B is the provided CA, and the caBundles contain another CA A, the steps are:
//!
//! 1. Trust: the replica records B in the Secret, in addition to A.
//! 2. Publish: it writes A and B into every caBundle.
//! 3. AnnounceProvided: it records in the Secret that every caBundle contains B. The *overlap* begins, a period in
//!    which every caBundle contains both CAs.
//! 4. After the overlap, every API server has had enough time to read B. The replica becomes ready only now, so no
//!    replica with A is stopped too early.
//! 5. Trust: the replica removes A from the Secret, together with its private key if A was self-managed. It does so
//!    only when no replica can serve a leaf certificate of A any more. This is at least the lifetime of a leaf
//!    certificate and an overlap after step 1.
//! 6. Publish: it removes A from every caBundle.
//!
//! Replicas with self-managed and with provided certificates can run side by side for any time. Meanwhile, each replica
//! regularly reports in the Secret that it uses its CA. No replica removes a CA with a recent report. No replica
//! becomes ready without a recent report about its own CA.

use time::{Duration, OffsetDateTime};

use super::certificate::Certificate;
use super::state::State;
use super::steps::{MAX_OLD, POLL, Seen, Step, Timing, UNREPORTED, all_hold, in_use, is_report_due, unknown};

/// Returns the next step of a replica that serves a leaf certificate of one of the `provided` CAs. The step is a write
/// or a wait.
pub fn next(seen: &Seen<'_>, provided: &[Certificate], timing: &Timing) -> Step {
    let wanted = seen.state.bundle();
    if !provided.iter().all(|certificate| wanted.contains(certificate)) {
        return Step::Trust(Box::new(trusting(seen, provided, timing)));
    }
    if seen.bundles.iter().any(|bundle| !bundle.is(&wanted)) {
        return Step::Publish(wanted);
    }
    match seen.state.announced {
        None => Step::AnnounceProvided,
        Some(_) if is_use_unreported(seen, provided, timing) => Step::Use(provided.to_vec()),
        // The replica becomes ready after this time; see `unready`.
        Some(_) if seen.unchanged < timing.recovery => Step::Rest((timing.recovery - seen.unchanged).min(POLL)),
        Some(_) if wanted.iter().all(|certificate| provided.contains(certificate)) => Step::Rest(POLL),
        Some(announced) => forget(seen, announced, provided, timing),
    }
}

/// Returns the state in which every caBundle must contain `provided`, the CAs of this replica's mounted certificate.
/// The state keeps all other CAs that caBundles contain, because replicas may serve leaf certificates of these CAs.
///
/// If there are no other CAs, sets [`State::announced`] so far in the past that the waiting time is over. The replica
/// then becomes ready without waiting until API servers have read the new caBundles.
fn trusting(seen: &Seen<'_>, provided: &[Certificate], timing: &Timing) -> State {
    let mut old = provided.to_vec();
    old.extend(seen.state.old.iter().filter(|one| !provided.contains(one)).cloned());
    let mut state = State { old, switched: Some(seen.now), announced: None, ..seen.state.clone() };
    state.old.extend(unknown(seen, &state.bundle()));
    state.old.truncate(MAX_OLD.max(provided.len()));
    let is_first = state.bundle().iter().all(|certificate| provided.contains(certificate));
    state.announced = is_first.then_some(seen.now - timing.overlap);
    if !is_first {
        // Report the signing CA as used too; the replicas that use it repeat the report from now on.
        let signing = state.current.as_ref().map(|current| current.certificate.clone());
        state.record_use(provided.iter().chain(&signing), seen.now);
    }
    state
}

/// Returns the step that removes all CAs except `provided`, the CAs of this replica's mounted certificate, from the
/// shared state. While a replica may still serve a leaf certificate of another CA, the step is a wait instead. If the
/// recorded time of the last CA change is missing or in the future, the step corrects this time.
fn forget(seen: &Seen<'_>, announced: OffsetDateTime, provided: &[Certificate], timing: &Timing) -> Step {
    let Some(switched) = seen.state.switched.filter(|switched| *switched <= seen.now + timing.overlap) else {
        return Step::Redate;
    };
    // The second term covers a clock that jumped ahead.
    let left = (switched + timing.retirement() - seen.now).max(timing.overlap - seen.unchanged);
    let bundle = seen.state.bundle();
    let left = left.max(in_use(seen, bundle.iter().filter(|one| !provided.contains(one)), timing));
    if left > Duration::ZERO {
        return Step::Rest(left.min(POLL));
    }
    Step::Trust(Box::new(State { old: provided.to_vec(), announced: Some(announced), ..State::default() }))
}

/// Returns whether this replica must now report in the Secret that it uses `provided`, the CAs of its mounted
/// certificate. Reports are needed only while caBundles also contain other CAs. Without reports, the replicas that use
/// another CA could remove the CAs in `provided`.
fn is_use_unreported(seen: &Seen<'_>, provided: &[Certificate], timing: &Timing) -> bool {
    let has_others = seen.state.bundle().iter().any(|certificate| !provided.contains(certificate));
    has_others && is_report_due(seen, provided, timing)
}

/// Returns the reason why this replica is not ready; `None` if every API server trusts `provided`, the CAs of the
/// replica's mounted certificate. The replica is not ready if some API servers may not trust leaf certificates of these
/// CAs yet, or may stop trusting them before the replica's next report.
pub fn unready(seen: &Seen<'_>, provided: &[Certificate], timing: &Timing) -> Option<String> {
    let wanted = seen.state.bundle();
    let is_published = |one: &Certificate| wanted.contains(one) && all_hold(seen.bundles, one);
    if !provided.iter().all(is_published) {
        return Some("a caBundle of our webhooks does not contain the CA yet".to_owned());
    }
    if is_use_unreported(seen, provided, timing) {
        return Some(UNREPORTED.to_owned());
    }
    // Another node may have recorded this time: the full overlap covers the difference between the clocks.
    let is_seen =
        |announced: OffsetDateTime| announced + timing.overlap <= seen.now || seen.unchanged >= timing.recovery;
    let waits = "the CA is in every caBundle; waiting until all API servers have seen it";
    (!seen.state.announced.is_some_and(is_seen)).then(|| waits.to_owned())
}
