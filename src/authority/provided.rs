//! Computes the steps of a replica with a provided certificate. Such a certificate is issued outside Portcullis, for
//! example by cert-manager.
//!
//! The replica also adds the CA of its certificate to the caBundles. The Secret that stores a self-managed CA also
//! records this CA, among the CAs whose leaf certificates replicas may serve. So all replicas agree on the bundles.
//! They also agree while provided certificates replace self-managed ones, or the other way round. The *overlap* is the
//! period in which every caBundle contains both CAs before a replica with the new CA becomes ready:
//!
//! ```text
//!                 Trust                  Publish, AnnounceProvided           an overlap later           Forget
//! bundles A ─────────────▶ + provided B ──────────────────────────▶ bundles A, B ────────────▶ ready ─────────▶ bundles B
//!                                                                              (a leaf's lifetime and an overlap later)
//! ```
//!
//! The replica becomes ready only after every API server had enough time to read B. So no replica with A is stopped too
//! early. When no replica can serve a leaf certificate of A any more, A is removed. If A was self-managed, its private
//! key is removed too.
//!
//! Replicas with self-managed and with provided certificates can run side by side for any time. Each replica regularly
//! reports that it uses its CA, and no replica removes a CA with a recent report. No replica is ready without a recent
//! report about its CA.

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

/// Returns the state in which caBundles contain `provided`, the CAs of this replica's mounted certificate, in addition
/// to other CAs. CAs that are only in caBundles are kept, because replicas may serve leaf certificates of these CAs.
///
/// If there are no other CAs, sets [`State::announced`] to a time that is long enough ago. So the replica becomes ready
/// without waiting for API servers to read the CAs in `provided`.
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

/// Returns the step that removes all CAs except `provided`, the CAs of this replica's mounted certificate. While a
/// replica may still serve a leaf certificate of another CA, returns a wait instead.
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

/// Returns whether replicas must report that they use `provided`, the CAs of their mounted certificates. Reports are
/// needed only while caBundles also contain other CAs. Without a recent report, replicas with other CAs could remove
/// these CAs.
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
