//! Computes the next step of a CA rotation. The computation is a pure function. Its input is the state of the CA in the
//! Secret, the caBundles of the webhook configurations, and the time.
//!
//! Each replica signs its own leaf certificate with the CA in the Secret. A rotation replaces this CA, A, with a new
//! CA, B. All progress is recorded in the Secret and the caBundles, so any replica can take the next step:
//!
//! 1. Prepare: creates B as the next CA, and stores it in the Secret. A still signs leaf certificates.
//! 2. Publish: writes A and B into every caBundle.
//! 3. Announce: records in the Secret that every caBundle contains B. Now the *overlap* begins. This is a waiting time
//!    in which every API server reads B.
//! 4. Switch: makes B the signing CA after the overlap. A becomes a former CA.
//! 5. Retire: removes A from the Secret when all leaf certificates of A have expired.
//! 6. Publish: removes A from every caBundle.
//!
//! API servers must trust the leaf certificates of all replicas at any time. These rules ensure this:
//!
//! - B signs only after Switch. Each replica measures the overlap with its own clock, from its first reading of the
//!   announced state. If a caBundle no longer contains B, a replica deletes the record of step 3 (step Withdraw). The
//!   overlap then begins again after the caBundle is corrected.
//! - A signs only before Switch. Switch deletes the private key of A from the Secret, and every replica reads the
//!   Secret before it signs. So all leaf certificates of A expire within their lifetime after Switch. Retire waits for
//!   this lifetime, and for one more overlap.
//! - Some replicas may serve certificates that are issued outside Portcullis (see [`super::provided`]). Then each
//!   replica reports in the Secret which CA it uses, before it becomes ready and then regularly. Retire waits until no
//!   replica can use a former CA any more.
//! - If the Secret is deleted, a replica may still have the signing CA in memory. If every caBundle contains this CA,
//!   the replica writes it into the Secret again (step Restore). No leaf certificate changes.
//! - If the Secret has no signing CA but the caBundles contain CAs, replicas may still use these CAs. So they are
//!   recorded as former CAs (step Keep), and remain in the caBundles.
//! - The very first CA signs without an overlap, if the caBundles contain no other CA. Another replica may write a
//!   caBundle after this replica has read it. So the Secret and the caBundles are read a second time before this CA
//!   signs.
//!
//! If two replicas write the Secret at the same time, only one of them succeeds, because each write contains the
//! resourceVersion that the replica has read. The other replica reads again.
//!
//! Publish writes a webhook configuration only if it has not changed since it was read. Each replica reads the
//! caBundles before the Secret. So a replica with an outdated state cannot overwrite a caBundle that another replica
//! wrote from a newer state.

use time::{Duration, OffsetDateTime};

use super::certificate::Certificate;
use super::state::{Authority, Next, State};

/// Maximum number of former CAs in the Secret. The number is limited because each former CA makes the caBundles larger.
/// At the limit, a requested rotation waits until some former CAs are removed.
pub const MAX_OLD: usize = 8;
/// Longest interval between two reads of the Secret and the caBundles. Watches usually report changes sooner.
pub const POLL: Duration = Duration::seconds(30);

/// Time in which all API servers read a new CA from the caBundles of the webhook configurations. An API server notices
/// a lost watch within 45 s, and then reads the caBundles again.
///
/// A replica waits this long in two cases: no CA signs certificates yet, or the certificate of the replica was issued
/// outside Portcullis. It never waits longer than `Timing::overlap`, the overlap of old and new CA in a rotation. No
/// time is added for clock differences, because each replica uses its own clock.
const RECOVERY: Duration = Duration::seconds(50);

/// The reason why a replica is not ready: the Secret contains no recent report that the CA of the replica is in use.
/// The replica writes this report in its next step. Without the report, other replicas could remove the CA from the
/// caBundles.
pub(super) const UNREPORTED: &str = "the Secret has no recent report that replicas use the CA; reporting it";

/// Time that a replica waits before the very first CA in the Secret signs certificates. During this time, another
/// replica may change the Secret, or write another CA into a caBundle. So the replica reads both again after the wait.
/// If it finds such a change, the CA does not sign yet.
const MOMENT: Duration = Duration::milliseconds(100);

/// The lifetimes of the CA and of leaf certificates, and the overlap of old and new CA in a rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Lifetime of a CA. A rotation begins after two thirds of this time.
    pub authority: Duration,
    /// Lifetime of a leaf certificate. A leaf certificate is replaced after two thirds of its lifetime.
    pub leaf: Duration,
    /// The overlap of CAs in a rotation. During this time, every caBundle contains the old and the new CA, and the new
    /// CA does not sign yet. The overlap is longer than the time in which an API server notices a lost watch. It is
    /// also longer than the clock difference between nodes.
    pub overlap: Duration,
    /// Time that a replica waits until all API servers have read a new CA from the caBundles, in these two cases:
    ///
    /// - The Secret of the CA has no signing CA, for example because it was deleted.
    /// - The certificate of the replica was issued outside Portcullis.
    ///
    /// This time is the minimum of `overlap` and 50 s. In all other cases, the replica waits for `overlap`.
    pub recovery: Duration,
}

impl Default for Timing {
    /// Returns the default timing. A CA is valid for a year. A leaf certificate is valid for a week, so that a replica
    /// can be without a connection to the API server for a weekend. The old and the new CA overlap for five minutes.
    /// This is enough, because an API server notices a lost watch within 45 seconds, and then reads the new CA.
    fn default() -> Self {
        Self::new(Duration::days(365), Duration::days(7), Duration::minutes(5))
    }
}

impl Timing {
    /// Creates the timing of CA rotations. `authority` is the lifetime of a CA, and `leaf` is the lifetime of a leaf
    /// certificate. `overlap` is the time for which every caBundle contains a new CA before this CA signs.
    pub fn new(authority: Duration, leaf: Duration, overlap: Duration) -> Self {
        Self { authority, leaf, overlap, recovery: overlap.min(RECOVERY) }
    }

    /// Checks that the durations are valid.
    ///
    /// # Errors
    ///
    /// If a duration is too short, or if a rotation may not complete before the CA expires. The error is a message for
    /// the user.
    pub fn check(&self) -> Result<(), String> {
        if self.leaf < Duration::seconds(3) || self.overlap < Duration::SECOND {
            return Err(
                "a leaf certificate must be valid for at least 3 seconds, and the overlap must be at least 1 second"
                    .to_owned(),
            );
        }
        if self.overlap * 2 > self.authority / 3 {
            return Err(format!(
                "a CA that is valid for {} is replaced in the last third of this time, which must be at least twice the \
                 overlap of {}; increase the validity of the CA, or shorten the overlap",
                self.authority, self.overlap
            ));
        }
        Ok(())
    }

    /// Returns how long replicas may serve leaf certificates of a former CA after [`Step::Switch`]. This is the
    /// lifetime of a leaf certificate plus an overlap.
    pub(super) fn retirement(&self) -> Duration {
        self.leaf + self.overlap
    }

    /// Returns the interval at which replicas report the CA of their leaf certificate. This is a quarter of the
    /// lifetime of a leaf certificate.
    fn report(&self) -> Duration {
        self.leaf / 4
    }

    /// Returns the maximum time for which replicas may use a CA after the last report about this CA. The time is the
    /// interval between reports, plus the lifetime of a leaf certificate, plus an overlap for clock differences.
    ///
    /// In the worst case, a replica renews its leaf certificate just before its next report, and then cannot send the
    /// report. It serves the new leaf certificate until this certificate expires.
    fn lease(&self) -> Duration {
        self.retirement() + self.report()
    }
}

/// The CA certificates of a webhook's caBundle. Empty if the caBundle cannot be parsed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bundle(pub Vec<Certificate>);

impl Bundle {
    /// Returns whether the bundle contains the CA `certificate`.
    pub fn holds(&self, certificate: &Certificate) -> bool {
        self.0.contains(certificate)
    }

    /// Returns whether the bundle contains exactly the certificates in `wanted`, in any order.
    pub fn is(&self, wanted: &[Certificate]) -> bool {
        wanted.iter().all(|one| self.holds(one)) && self.0.iter().all(|one| wanted.contains(one))
    }
}

/// The observations of a replica from which [`next`] computes the next step of a CA rotation. They include the state of
/// the CA in the Secret, the caBundles of the webhooks, and the current time.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'s> {
    /// The state of the CA, as read from the Secret.
    pub state: &'s State,
    /// The caBundles of all Portcullis webhooks. The replica reads them before it reads `state`.
    pub bundles: &'s [Bundle],
    /// The last state with a signing CA that this process has read. If the Secret is deleted, this state is written
    /// into a new Secret.
    pub remembered: Option<&'s State>,
    /// The current time, by the wall clock.
    pub now: OffsetDateTime,
    /// Time since this process first read the current value of `state`, measured with the monotonic clock. Changes of
    /// `State::used` do not count.
    pub unchanged: Duration,
    /// Whether an annotation on the Secret requests a new CA.
    pub rotation_requested: bool,
}

/// A step of a CA rotation: a write, or a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Create the next CA.
    Prepare,
    /// Record these CAs as former CAs. This step is needed if caBundles contain CAs but the Secret has no signing CA.
    /// Replicas may still serve leaf certificates of these CAs.
    Keep(Vec<Certificate>),
    /// Write this state into the Secret, because the Secret was lost. The state contains the signing CA that this
    /// process remembers.
    Restore(Box<State>),
    /// Delete `Next::published` from the Secret, because a caBundle no longer contains the next CA. `Next::published`
    /// is the time at which every caBundle was found to contain this CA. A later step [`Step::Announce`] records a new
    /// time. Then the overlap begins again. The next CA signs certificates only after the overlap.
    Withdraw,
    /// Write these CA certificates into every caBundle that differs.
    Publish(Vec<Certificate>),
    /// Record that every caBundle contains the next CA.
    Announce,
    /// From now on, sign leaf certificates with the next CA of the rotation. The CA that signed until now becomes a
    /// former CA.
    Switch,
    /// Set `State::switched` to the current time, because it is missing or in the future. `State::switched` is the time
    /// of the last CA change. Replicas use it to compute when they may remove CAs that are no longer used.
    Redate,
    /// Remove the former CAs from the Secret.
    Retire,
    /// Write this state into the Secret that contains the CAs of all replicas. Only a replica whose certificate was
    /// issued outside Portcullis, for example by cert-manager, takes this step. The state contains the CAs of this
    /// certificate. Other CAs that no replica uses any more are removed from the state.
    Trust(Box<State>),
    /// Record in the Secret that every caBundle now contains the CAs of this replica's certificate. A replica takes
    /// this step only if its certificate was issued outside Portcullis, for example by cert-manager. Before the replica
    /// becomes ready, it waits 50 seconds by default, so that all API servers can read the caBundles.
    AnnounceProvided,
    /// Report in the Secret that this replica serves a leaf certificate of one of these CAs. Without the report,
    /// replicas that use another CA could remove these CAs from the caBundles.
    Use(Vec<Certificate>),
    /// Wait for at most this duration. The wait ends earlier if the Secret or a caBundle changes.
    Rest(Duration),
}

impl Step {
    /// Returns a short description of the step for the log.
    pub fn sentence(&self) -> &'static str {
        match self {
            Self::Prepare => "create the next CA",
            Self::Keep(_) => "keep CAs found in bundles, because replicas may serve certificates that these CAs signed",
            Self::Restore(_) => "restore the CA that was lost with the Secret",
            Self::Withdraw => "a bundle lost the next CA; restart the overlap",
            Self::Publish(_) => "correct the bundles",
            Self::Announce => "every bundle contains the next CA; begin the overlap",
            Self::Switch => "sign with the next CA",
            Self::Redate => "correct the time of the last switch",
            Self::Retire => "remove former CAs from the bundles",
            Self::Trust(_) => "trust the CA of the mounted certificate",
            Self::AnnounceProvided => "every bundle contains the CA of the mounted certificate; begin the overlap",
            Self::Use(_) => "report the CA that this replica uses",
            Self::Rest(_) => "wait",
        }
    }
}

/// Returns the next step of a CA rotation for a replica that signs its own leaf certificate. The step is a write to the
/// Secret of the CA or to the caBundles, or a wait.
pub fn next(seen: &Seen<'_>, timing: &Timing) -> Step {
    if let Some(restored) = restored(seen) {
        return Step::Restore(Box::new(restored));
    }
    if let Some(step) = report(seen, timing) {
        return step;
    }
    let State { current, next, .. } = seen.state;
    let overlap = if current.is_some() { timing.overlap } else { timing.recovery };
    let wanted = seen.state.bundle();
    let is_wrong = seen.bundles.iter().any(|bundle| !bundle.is(&wanted));
    let unknown = unknown(seen, &wanted);
    match (current, next) {
        (None, None) => Step::Prepare,
        (_, Some(next)) if next.authority.certificate.is_due(seen.now) => Step::Prepare,
        (None, Some(_)) if !unknown.is_empty() => Step::Keep(unknown),
        (None, Some(_)) if seen.state.old.is_empty() => first(seen.unchanged),
        (_, Some(Next { authority, published: Some(_) })) if !all_hold(seen.bundles, &authority.certificate) => {
            Step::Withdraw
        }
        _ if is_wrong => Step::Publish(wanted),
        (_, Some(Next { published: None, .. })) => Step::Announce,
        (_, Some(_)) if seen.unchanged >= overlap => Step::Switch,
        (_, Some(_)) => Step::Rest((overlap - seen.unchanged).min(POLL)),
        (Some(current), None) => settled(seen, &current.certificate, timing),
    }
}

/// Returns [`Step::Use`] if this replica must now report that it uses the signing CA. The report is an entry in the
/// Secret of the CA. Without it, other replicas could later remove this CA from the caBundles.
fn report(seen: &Seen<'_>, timing: &Timing) -> Option<Step> {
    let current = &seen.state.current.as_ref()?.certificate;
    is_use_unreported(seen, current, timing).then(|| Step::Use(vec![current.clone()]))
}

/// Returns whether a report about `current`, the signing CA, is due. In the report, which is an entry in the Secret of
/// the CA, this replica says that it uses the CA. Reports are needed only if other replicas have certificates that were
/// issued outside Portcullis. These replicas remove a CA from the Secret if it has no recent report.
fn is_use_unreported(seen: &Seen<'_>, current: &Certificate, timing: &Timing) -> bool {
    let has_others = !seen.state.used.is_empty() && !seen.state.old.is_empty();
    has_others && is_report_due(seen, std::slice::from_ref(current), timing)
}

/// Returns whether a replica must now report that it uses the CAs in `certificates`. This is the case if, for at least
/// one of these CAs, the last report is missing, too old, or dated in the future.
pub(super) fn is_report_due(seen: &Seen<'_>, certificates: &[Certificate], timing: &Timing) -> bool {
    let is_recent = |at: OffsetDateTime| at <= seen.now + timing.overlap && seen.now < at + timing.report();
    certificates.iter().any(|certificate| !seen.state.last_use(certificate).is_some_and(is_recent))
}

/// Returns the time from now until no replica can use any of the CAs in `certificates` any more. It is zero or negative
/// if no replica can use them now. Each replica regularly reports which CA it uses. The last report about a CA
/// determines how long replicas can still use it.
pub(super) fn in_use<'c>(
    seen: &Seen<'_>,
    certificates: impl IntoIterator<Item = &'c Certificate>,
    timing: &Timing,
) -> Duration {
    let uses = certificates.into_iter().filter_map(|certificate| seen.state.last_use(certificate));
    // A report in the future comes from a clock that is ahead, by at most an overlap.
    uses.map(|at| (at.min(seen.now + timing.overlap) + timing.lease()) - seen.now).max().unwrap_or(Duration::ZERO)
}

/// Returns the state to write into the Secret of the CA after the Secret has lost its signing CA. The state contains
/// the signing CA that this process remembers. Returns `None` in these cases:
///
/// - The Secret has a signing CA.
/// - This process remembers no signing CA, or the remembered CA is not valid now.
/// - A caBundle does not contain the remembered CA.
///
/// The caBundles may contain further CAs, because other replicas may have rotated the CA in the meantime. The state
/// includes them as former CAs, so that they stay in the caBundles.
fn restored(seen: &Seen<'_>) -> Option<State> {
    let authority = seen.remembered?.current.as_ref().filter(|_| seen.state.current.is_none())?;
    let certificate = &authority.certificate;
    if !certificate.is_valid(seen.now) || !all_hold(seen.bundles, certificate) {
        return None;
    }
    let State { next, old, .. } = seen.state;
    let old = old.iter().filter(|former| *former != certificate).cloned().collect();
    let (announced, used) = (seen.state.announced, seen.state.used.clone());
    let mut state =
        State { current: Some(authority.clone()), next: next.clone(), old, switched: None, announced, used };
    let unknown = unknown(seen, &state.bundle());
    state.old.extend(unknown);
    state.switched = (!state.old.is_empty()).then_some(seen.now);
    Some(state)
}

/// Returns whether every caBundle in `bundles` contains the CA `certificate`.
pub fn all_hold(bundles: &[Bundle], certificate: &Certificate) -> bool {
    bundles.iter().all(|bundle| bundle.holds(certificate))
}

/// Returns the reason why this replica is not ready; `None` if it is ready. A replica is ready if the signing CA is
/// valid and every caBundle contains this CA.
///
/// If other replicas use certificates that were issued outside Portcullis, the Secret of the CA must also have a recent
/// entry which says that the signing CA is in use. Without the entry, other replicas could remove this CA from the
/// caBundles.
pub fn unready(seen: &Seen<'_>, timing: &Timing) -> Option<String> {
    let Some(current) = &seen.state.current else {
        return Some("no CA is in every caBundle of our webhooks yet".to_owned());
    };
    let certificate = &current.certificate;
    if !certificate.is_valid(seen.now) {
        return Some(format!(
            "the CA is not valid now (it expires at {}); a new one is being created",
            certificate.expires()
        ));
    }
    if !all_hold(seen.bundles, certificate) {
        return Some("a caBundle of our webhooks does not contain the CA yet".to_owned());
    }
    is_use_unreported(seen, certificate, timing).then(|| UNREPORTED.to_owned())
}

/// Returns the CA certificates that are in a caBundle but not in `wanted`. The caller adds them to the former CAs in
/// the Secret. The Secret has at most [`MAX_OLD`] former CAs, so the result omits the certificates that exceed this
/// number.
///
/// The result is sorted by the position in the caBundles, which list the most recent CAs first. Certificates at the
/// same position are sorted by the time at which they are due for replacement, the latest first. The result also
/// contains certificates that seem to be expired, because the clocks of replicas may differ.
pub(super) fn unknown(seen: &Seen<'_>, wanted: &[Certificate]) -> Vec<Certificate> {
    let held = seen.bundles.iter().flat_map(|bundle| bundle.0.iter().enumerate());
    let mut held: Vec<_> = held.filter(|(_, one)| !wanted.contains(one)).collect();
    held.sort_by(|(at, a), (other, b)| at.cmp(other).then_with(|| b.due().cmp(&a.due())).then_with(|| a.cmp(b)));
    let mut unknown: Vec<Certificate> = Vec::new();
    for (_, one) in held {
        if !unknown.contains(one) {
            unknown.push(one.clone());
        }
    }
    unknown.truncate(MAX_OLD.saturating_sub(seen.state.old.len()));
    unknown
}

/// Returns the next step when the state contains the very first CA, which does not sign certificates yet. `unchanged`
/// is the time since this replica first read this state. If it is zero, the replica waits a moment, because another
/// replica may change the state. If the state is still the same after the wait, the CA becomes the signing CA.
fn first(unchanged: Duration) -> Step {
    if unchanged > Duration::ZERO { Step::Switch } else { Step::Rest(MOMENT) }
}

/// Returns the next step of a replica while no rotation is in progress and every caBundle is correct. For example, the
/// step begins a rotation, removes former CAs, or waits.
fn settled(seen: &Seen<'_>, current: &Certificate, timing: &Timing) -> Step {
    let State { old, switched, .. } = seen.state;
    if current.is_due(seen.now) || seen.rotation_requested && old.len() < MAX_OLD {
        return Step::Prepare;
    }
    if old.is_empty() {
        return Step::Rest((current.due() - seen.now).min(POLL));
    }
    let Some(switched) = switched.filter(|switched| *switched <= seen.now + timing.overlap) else {
        return Step::Redate;
    };
    // The second term covers a clock that jumped ahead: the other replicas have renewed their leaves by then.
    let left = (switched + timing.retirement() - seen.now).max(timing.overlap - seen.unchanged);
    let left = left.max(in_use(seen, old, timing));
    if left <= Duration::ZERO { Step::Retire } else { Step::Rest(left.min(POLL)) }
}

impl State {
    /// Returns the state after `step` is taken at the time `now`. For [`Step::Prepare`], returns the state unchanged,
    /// because this step needs a new CA. Callers use [`State::prepared`] for this step.
    #[must_use]
    pub fn after(&self, step: &Step, now: OffsetDateTime) -> Self {
        let mut after = self.clone();
        match step {
            Step::Keep(kept) => after.old.extend(kept.iter().cloned()),
            Step::Restore(state) | Step::Trust(state) => after.clone_from(state),
            Step::AnnounceProvided => after.announced = Some(now),
            Step::Withdraw => after.set_published(None),
            Step::Announce => after.set_published(Some(now)),
            Step::Switch => after.switch(now),
            Step::Redate => after.switched = Some(now),
            Step::Retire => after = Self { current: after.current, next: after.next, ..Self::default() },
            Step::Use(certificates) => after.record_use(certificates, now),
            Step::Prepare | Step::Publish(_) | Step::Rest(_) => {}
        }
        after
    }

    /// Returns a copy of the state in which `authority` is the next CA of a rotation.
    ///
    /// If [`State::announced`] is set, some replicas have certificates that were issued outside Portcullis. These
    /// replicas remove CAs that no replica uses. To prevent the removal of `authority` before it signs its first
    /// certificate, the new state says that `authority` is used since its issue time. [`State::switched`] is set to the
    /// same time.
    #[must_use]
    pub fn prepared(&self, authority: Authority) -> Self {
        let mut after = self.clone();
        if self.announced.is_some() {
            after.record_use([&authority.certificate], authority.certificate.issued());
            after.switched = Some(authority.certificate.issued());
        }
        after.next = Some(Next { authority, published: None });
        after
    }

    fn set_published(&mut self, published: Option<OffsetDateTime>) {
        if let Some(next) = &mut self.next {
            next.published = published;
        }
    }

    fn switch(&mut self, now: OffsetDateTime) {
        let Some(next) = self.next.take() else { return };
        let before = self.current.replace(next.authority);
        self.old.splice(..0, before.map(|before| before.certificate));
        self.switched = (!self.old.is_empty()).then_some(now);
    }
}
