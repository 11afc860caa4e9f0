//! Computes the next step of a replica whose certificate is issued outside Portcullis, for example by cert-manager. The
//! certificate is mounted into the replica as a file. Its CA is called the provided CA.
//!
//! An API server trusts a replica only if the caBundles of the webhook configurations contain the CA of the replica's
//! certificate. So the replica adds the provided CA to the caBundles. The replica also records the provided CA in a
//! Secret that all replicas read. So all replicas write the same caBundles.
//!
//! For example, the caBundles contain the CA A, which other replicas use. A new replica has a certificate of the
//! provided CA B. The new replica takes these steps:
//!
//! 1. It adds B to the Secret, which already contains A.
//! 2. It writes A and B into every caBundle.
//! 3. It records in the Secret that every caBundle contains B.
//! 4. It waits 50 seconds, in which every API server reads B. Then it becomes ready. During a rollout, Kubernetes waits
//!    until it is ready, and then stops a replica that uses A. A replica that starts long after step 3 does not wait.
//! 5. When no replica can use A any more, it removes A from the Secret, and also the private key of A if the Secret has
//!    one. The earliest time for this step is the time of step 1, plus the lifetime of a leaf certificate, plus
//!    `Timing::overlap` for clock differences.
//! 6. It removes A from every caBundle.
//!
//! Some replicas may use a provided CA while others use a CA that Portcullis created. This may last for any length of
//! time. During this time, each replica regularly reports which CA it uses. The Secret contains the time of the last
//! report for each CA. A replica is not ready unless the report for its CA is recent. A CA is removed only if the last
//! report for it is old enough.

use time::{Duration, OffsetDateTime};

use super::certificate::Certificate;
use super::state::State;
use super::steps::{MAX_OLD, POLL, Seen, Step, Timing, UNREPORTED, all_hold, in_use, is_report_due, unknown};

/// Returns the next step of a replica whose certificate was issued outside Portcullis, by a CA in `provided`. The steps
/// make API servers trust this CA, and later remove CAs that no replica uses any more. A step is a wait, a write to the
/// Secret with the CAs of all replicas, or a write to the caBundles of the webhook configurations.
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

/// Returns the new state to write into the Secret of the CA. The state contains these CAs:
///
/// - The CAs in `provided`, so that API servers will trust them. They issued the certificate that is mounted into this
///   replica.
/// - The other CAs in the Secret and in the caBundles, because other replicas may use them.
///
/// If there are no other CAs, this replica need not wait until API servers have read the new CAs. In this case,
/// [`State::announced`], the start of the wait, is set to a time in the past.
fn trusting(seen: &Seen<'_>, provided: &[Certificate], timing: &Timing) -> State {
    let mut old = provided.to_vec();
    old.extend(seen.state.old.iter().filter(|one| !provided.contains(one)).cloned());
    let mut state = State { old, switched: Some(seen.now), announced: None, ..seen.state.clone() };
    state.old.extend(unknown(seen, &state.bundle()));
    state.old.truncate(MAX_OLD.max(provided.len()));
    let is_first = state.bundle().iter().all(|certificate| provided.contains(certificate));
    state.announced = is_first.then_some(seen.now - timing.overlap);
    if !is_first {
        // Also report the signing CA as used. From now on, the replicas that use this CA repeat the report.
        let signing = state.current.as_ref().map(|current| current.certificate.clone());
        state.record_use(provided.iter().chain(&signing), seen.now);
    }
    state
}

/// Returns the next step to remove all CAs except `provided` from the Secret. The step is often a wait, because
/// replicas may still use the other CAs. `announced` is the time at which every caBundle was found to contain
/// `provided`.
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

/// Returns whether a report about the CAs in `provided` is due. `provided` contains the CAs of the mounted certificate
/// of this replica. In the report, which is an entry in the Secret of the CAs, the replica says that it uses these CAs.
///
/// The result is false if the Secret contains no other CAs. If it contains other CAs, the replicas that use them may
/// remove a CA that has no recent report.
fn is_use_unreported(seen: &Seen<'_>, provided: &[Certificate], timing: &Timing) -> bool {
    let has_others = seen.state.bundle().iter().any(|certificate| !provided.contains(certificate));
    has_others && is_report_due(seen, provided, timing)
}

/// Returns why this replica is not ready; `None` if it is ready. `provided` contains the CAs of the mounted
/// certificate.
///
/// The replica becomes ready when two conditions are met:
///
/// - All API servers trust the CAs in `provided`.
/// - The Secret with the CAs of all replicas contains a recent report that a replica uses the CAs in `provided`. This
///   report is not needed if the Secret contains no other CAs.
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
