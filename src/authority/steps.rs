//! Computes the next step of the CA: a pure function of the shared state, the bundles and the time.
//!
//! A rotation has phases. Each is written to the Secret before the next one begins, so that any replica can continue:
//!
//! ```text
//!            Prepare              Publish, then Announce          Switch                    Retire
//! current A ─────────▶ + next B ─────────────────────────▶ + published ─────▶ current B, old A ─────▶ current B
//! bundles A              bundles A and B                  an overlap long       a leaf's life long     bundles B
//! ```
//!
//! Why no replica ever serves a leaf that a bundle does not trust:
//!
//! - A leaf of B is signed only after Switch. Switch requires that this process has observed, for the length of an
//!   overlap, that B is announced and in every bundle. If a bundle loses B, the announcement is withdrawn first.
//! - A leaf of A is signed only from a Secret that was just read. After Switch the Secret has no key of A, so the last
//!   leaf of A expires a leaf's life after Switch, and Retire follows an overlap later.
//! - While provided CAs are trusted too (see [`super::provided`]), every replica reports that it uses its CA, before it
//!   is ready and regularly. Retire waits until no replica can use a former CA any more.
//! - If the Secret is lost, a replica that remembers a CA which every bundle still contains restores it; no leaf
//!   changes.
//! - If there is no CA but bundles contain certificates, other replicas' leaves may be signed by them; Keep makes them
//!   former CAs. Only if the bundles are empty does the first CA sign at once, and only after a second observation,
//!   because the bundles of the first one may be older than the previous state of the Secret.
//!
//! Every step but Publish writes the Secret with its resourceVersion, so one of two concurrent replicas succeeds and
//! the other reads again. Bundles are read before the Secret: a successful write of a bundle is therefore based on a
//! state that was current after that version of the bundle.

use time::{Duration, OffsetDateTime};

use super::certificate::Certificate;
use super::state::{Authority, Next, State};

/// Maximum number of former CAs in the Secret. Each former CA makes the caBundles larger. With so many of them, a
/// requested rotation waits until they are removed.
pub const MAX_OLD: usize = 8;
/// Longest interval between two reads of the Secret and the caBundles; watches usually report changes sooner.
pub const POLL: Duration = Duration::seconds(30);

/// Overlap of CA certificates in a rotation if there is no signing CA: longer than client-go takes to notice a lost
/// watch (45 s). No replica signs with another CA meanwhile, so this overlap need not cover clock differences, as the
/// full overlap does.
const RECOVERY: Duration = Duration::seconds(50);

/// The reason why a replica is not ready before its first report about its CA.
pub(super) const UNREPORTED: &str = "the Secret has no recent report that replicas use the CA; reporting it";

/// Pause between the two reads of the Secret and the caBundles that must agree before the first CA signs.
const MOMENT: Duration = Duration::milliseconds(100);

/// The lifetimes of the CA and of leaf certificates, and the overlap of old and new CA in a rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Life of a CA. A rotation begins after two thirds of it.
    pub authority: Duration,
    /// Life of a leaf certificate. A leaf certificate is replaced after two thirds of its life.
    pub leaf: Duration,
    /// Overlap: the time for which every caBundle contains the old and the new CA before the new one signs. It is
    /// longer than an API server takes to notice a lost watch, and longer than the clock difference between nodes.
    pub overlap: Duration,
    /// The overlap of old and new CAs if there is no signing CA, because the Secret was lost while no replica was
    /// running.
    pub recovery: Duration,
}

impl Default for Timing {
    /// Returns the default timing: CAs live a year, leaf certificates a week (a replica may lose the API server for a
    /// weekend), and the overlap is five minutes (client-go's HTTP/2 pings notice a lost watch within 45 seconds).
    fn default() -> Self {
        Self::new(Duration::days(365), Duration::days(7), Duration::minutes(5))
    }
}

impl Timing {
    /// Creates the timing from the life of a CA, the life of a leaf certificate, and the overlap of old and new CA.
    pub fn new(authority: Duration, leaf: Duration, overlap: Duration) -> Self {
        Self { authority, leaf, overlap, recovery: overlap.min(RECOVERY) }
    }

    /// Checks that a rotation completes before the CA expires.
    ///
    /// # Errors
    ///
    /// A sentence about the duration that is too short or too long.
    pub fn check(&self) -> Result<(), String> {
        if self.leaf < Duration::seconds(3) || self.overlap < Duration::SECOND {
            return Err("a leaf must last 3 seconds at least, and the overlap 1 second".to_owned());
        }
        if self.overlap * 2 > self.authority / 3 {
            return Err(format!(
                "a CA that lasts {} is changed in its last third, in which an overlap of {} must fit twice; let the CA \
                 last longer, or shorten the overlap",
                self.authority, self.overlap
            ));
        }
        Ok(())
    }

    /// Returns for how long, after [`Step::Switch`], replicas may serve leaf certificates of a former CA: the life of a
    /// leaf certificate plus an overlap.
    pub(super) fn retirement(&self) -> Duration {
        self.leaf + self.overlap
    }

    /// Returns the interval at which replicas report the CA of their leaf certificate: a quarter of the life of a leaf
    /// certificate.
    fn report(&self) -> Duration {
        self.leaf / 4
    }

    /// Returns for how long a replica may serve leaf certificates of a CA after its last report about that CA. A
    /// replica that can no longer reach the API server has renewed its leaf certificate at the latest before its next
    /// report was due.
    fn lease(&self) -> Duration {
        self.retirement() + self.report()
    }
}

/// The CA certificates of a webhook's caBundle; empty if the caBundle cannot be parsed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bundle(pub Vec<Certificate>);

impl Bundle {
    /// Returns whether the bundle contains this CA.
    pub fn holds(&self, certificate: &Certificate) -> bool {
        self.0.contains(certificate)
    }

    /// Returns whether the bundle contains exactly these certificates, in any order.
    pub fn is(&self, wanted: &[Certificate]) -> bool {
        wanted.iter().all(|one| self.holds(one)) && self.0.iter().all(|one| wanted.contains(one))
    }
}

/// The state of the CA, the caBundles and the times that a replica has observed: the input of [`next`].
#[derive(Debug, Clone, Copy)]
pub struct Seen<'s> {
    /// The state of the CA, as read from the Secret.
    pub state: &'s State,
    /// The caBundles of all Portcullis webhooks. They were read before `state`.
    pub bundles: &'s [Bundle],
    /// The last state with a signing CA that this process has read. It is used to restore a lost Secret.
    pub remembered: Option<&'s State>,
    /// The current time, by the wall clock.
    pub now: OffsetDateTime,
    /// For how long this process has observed this state without a change, by the monotonic clock.
    pub unchanged: Duration,
    /// Whether an annotation on the Secret requests a new CA.
    pub rotation_requested: bool,
}

/// A step of a CA rotation: a write, or a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Create the next CA.
    Prepare,
    /// Record these CAs as former ones, because caBundles contain them and the Secret has no signing CA.
    Keep(Vec<Certificate>),
    /// Write this state, with the signing CA that this process remembers, because the Secret was lost.
    Restore(Box<State>),
    /// Withdraw the announcement of the next CA, because a caBundle does not contain that CA any more.
    Withdraw,
    /// Write these CA certificates into every caBundle that differs.
    Publish(Vec<Certificate>),
    /// Record that every caBundle contains the next CA.
    Announce,
    /// Make the next CA the signing one.
    Switch,
    /// Set the recorded time of the last switch (`State::switched`) to the current time, because it is missing or in
    /// the future.
    Redate,
    /// Remove the former CAs from the Secret.
    Retire,
    /// Write this state, which trusts the CAs of this replica's mounted certificate, in addition to the other CAs or
    /// instead of them.
    Trust(Box<State>),
    /// Record that every caBundle contains the CAs of this replica's mounted certificate.
    AnnounceProvided,
    /// Report that this replica serves a leaf certificate of one of these CAs, so that replicas that use another CA do
    /// not remove them.
    Use(Vec<Certificate>),
    /// Wait, for at most this long.
    Rest(Duration),
}

impl Step {
    /// Returns a short description of the step for the log.
    pub fn sentence(&self) -> &'static str {
        match self {
            Self::Prepare => "create the next CA",
            Self::Keep(_) => "keep CAs found in bundles, because replicas may serve their leaves",
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

/// Returns the next step of a replica that signs its own leaf certificate: a write or a wait.
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

/// Returns the step that reports that this replica uses the signing CA; `None` if no report is needed
/// ([`is_use_unreported`]).
fn report(seen: &Seen<'_>, timing: &Timing) -> Option<Step> {
    let current = &seen.state.current.as_ref()?.certificate;
    is_use_unreported(seen, current, timing).then(|| Step::Use(vec![current.clone()]))
}

/// Returns whether replicas with provided CAs could soon remove the signing CA: caBundles contain provided CAs too, and
/// the Secret has no recent report that a replica uses the signing CA.
fn is_use_unreported(seen: &Seen<'_>, current: &Certificate, timing: &Timing) -> bool {
    let has_others = !seen.state.used.is_empty() && !seen.state.old.is_empty();
    has_others && is_report_due(seen, std::slice::from_ref(current), timing)
}

/// Returns whether a replica should report that it uses the CAs in `certificates`: for one of them, the last report in
/// the Secret is missing, old or in the future.
pub(super) fn is_report_due(seen: &Seen<'_>, certificates: &[Certificate], timing: &Timing) -> bool {
    let is_recent = |at: OffsetDateTime| at <= seen.now + timing.overlap && seen.now < at + timing.report();
    certificates.iter().any(|certificate| !seen.state.last_use(certificate).is_some_and(is_recent))
}

/// Returns for how long replicas may still serve leaf certificates of the CAs in `certificates`, according to the last
/// reports in the Secret; zero if there is no report about these CAs.
pub(super) fn in_use<'c>(
    seen: &Seen<'_>,
    certificates: impl IntoIterator<Item = &'c Certificate>,
    timing: &Timing,
) -> Duration {
    let uses = certificates.into_iter().filter_map(|certificate| seen.state.last_use(certificate));
    // A report in the future comes from a clock that is ahead, by at most an overlap.
    uses.map(|at| (at.min(seen.now + timing.overlap) + timing.lease()) - seen.now).max().unwrap_or(Duration::ZERO)
}

/// Returns the state to restore if the signing CA was lost: if the Secret has none, and the CA that this process
/// remembers is valid and in every caBundle. Certificates in caBundles that the restored state does not contain become
/// former CAs, because other replicas may have rotated since.
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

/// Returns whether every caBundle in `bundles` contains this CA.
pub fn all_hold(bundles: &[Bundle], certificate: &Certificate) -> bool {
    bundles.iter().all(|bundle| bundle.holds(certificate))
}

/// Returns why some API servers may not trust leaf certificates of the signing CA, or may stop trusting them before
/// this replica's next report; `None` if every API server trusts them.
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

/// Returns the certificates in caBundles that are not `wanted`, at most as many as the state can add to its former CAs
/// ([`MAX_OLD`]). The order is that of the caBundles, because they list the signing CA first and then the former ones,
/// most recent first. Expired certificates are included, because this clock may be wrong; the time of issue is not
/// used, because clocks differ.
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

/// Returns the next step if the first CA is prepared and the caBundles contain no other CA: a wait at the first
/// observation, then [`Step::Switch`].
fn first(unchanged: Duration) -> Step {
    if unchanged > Duration::ZERO { Step::Switch } else { Step::Rest(MOMENT) }
}

/// Returns the next step if no rotation is in progress and every caBundle is correct: for example, to begin a rotation,
/// to remove former CAs, or to wait.
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
    /// Returns the state after `step` is taken at the time `now`. Does not apply [`Step::Prepare`], for which
    /// [`State::prepared`] exists.
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

    /// Returns the state with `authority` as the next CA. If provided CAs are trusted, the next CA is reported as used,
    /// so that replicas with provided CAs keep it until it signs, and do not change the state meanwhile.
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
