//! What is done next: a pure function of what the replicas agreed on, of what the bundles hold, and of the time.
//!
//! A change of the CA goes through phases, each written down before the one after it begins, so that any replica goes
//! on where another one ended:
//!
//! ```text
//!            Prepare              Publish, then Announce          Switch                    Retire
//! current A ─────────▶ + next B ─────────────────────────▶ + published ─────▶ current B, old A ─────▶ current B
//! bundles A              bundles A and B                  an overlap long       a leaf's life long     bundles B
//! ```
//!
//! Why no leaf is ever served that a bundle does not vouch for:
//!
//! - A leaf of B is signed only after Switch. Switch needs an overlap's time in which this very process saw B announced
//!   and found it in every bundle; a bundle that loses it meanwhile withdraws the announcement first.
//! - A leaf of A is signed only from a Secret that was read just now. After Switch there is none, so the last leaf of A
//!   ends a leaf's life after Switch, and Retire comes an overlap later than that.
//! - Where there is no CA (any more), but bundles hold something, it may be what other replicas' leaves are signed by, so
//!   Keep makes an old CA of it. Only where bundles hold nothing does the first CA sign at once, and only after a second
//!   look, as the bundles of the first one may be older than what was in the Secret before.
//!
//! Every step but Publish is a write of the Secret under its resourceVersion, so of two replicas one wins and the other
//! reads again. Bundles are read before the Secret: a write of a bundle that succeeds follows a state that was the
//! present one after that very version of the bundle.

use time::{Duration, OffsetDateTime};

use super::certificate::Certificate;
use super::state::{Authority, Next, State};

/// Bundles grow with each: an operator who asks for one change after the other waits until the first of them is over.
pub const MOST_OLD: usize = 8;
/// However quiet it is, the cluster is looked at this often; watches tell of changes sooner.
pub const LOOK_AGAIN: Duration = Duration::seconds(30);

/// Before a second look.
const MOMENT: Duration = Duration::milliseconds(100);

/// How long things last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// A CA's life. At two thirds of it a change begins.
    pub authority: Duration,
    /// A leaf's life. At two thirds of it the next one is signed.
    pub leaf: Duration,
    /// How long old and new CA are in every bundle before the new one signs: longer than an API server that lost its
    /// watch takes to notice, and than clocks of nodes are apart.
    pub overlap: Duration,
}

impl Default for Timing {
    /// A CA lasts a year. A leaf lasts a week, so that a replica may be without the API server for a weekend. A watch
    /// that is lost is noticed within 45 seconds (client-go's HTTP/2 pings); five minutes are generous.
    fn default() -> Self {
        Self { authority: Duration::days(365), leaf: Duration::days(7), overlap: Duration::minutes(5) }
    }
}

impl Timing {
    /// Whether a change is over before the CA expires.
    ///
    /// # Errors
    /// A sentence about what is too short or too long.
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

    /// How long after Switch a leaf of the CA before may be served.
    fn retirement(&self) -> Duration {
        self.leaf + self.overlap
    }
}

/// What a bundle holds; nothing where it cannot be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bundle(pub Vec<Certificate>);

impl Bundle {
    /// Whether it vouches for a CA.
    pub fn holds(&self, certificate: &Certificate) -> bool {
        self.0.contains(certificate)
    }

    /// Whether it holds these and no others, in whatever order.
    pub fn is(&self, wanted: &[Certificate]) -> bool {
        wanted.iter().all(|one| self.holds(one)) && self.0.iter().all(|one| wanted.contains(one))
    }
}

/// What is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'s> {
    /// What the replicas agreed on.
    pub state: &'s State,
    /// Every bundle of our configurations, read before the state.
    pub bundles: &'s [Bundle],
    /// The time of day.
    pub now: OffsetDateTime,
    /// For how long this process has known the state to be this, by a clock that does not jump.
    pub unchanged: Duration,
    /// Whether somebody asked for another CA.
    pub asked: bool,
}

/// What is done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Make the next CA.
    Prepare,
    /// Have these as CAs that signed before: bundles hold them, and who signed before is not known.
    Keep(Vec<Certificate>),
    /// Take back that every bundle holds the next CA.
    Withdraw,
    /// Write these into every bundle that holds anything else.
    Publish(Vec<Certificate>),
    /// Write down that every bundle holds the next CA.
    Announce,
    /// Let the next CA sign.
    Switch,
    /// Write down the present as the time of the last switch: what is there lies in the future, or is missing.
    Redate,
    /// Forget the CAs that signed before.
    Retire,
    /// Nothing, for at most so long.
    Rest(Duration),
}

impl Step {
    /// What it does, in words for a log.
    pub fn sentence(&self) -> &'static str {
        match self {
            Self::Prepare => "the next CA is made",
            Self::Keep(_) => "CAs that bundles hold are kept, as leaves of theirs may be served",
            Self::Withdraw => "a bundle lost the next CA: the overlap begins anew",
            Self::Publish(_) => "bundles are put right",
            Self::Announce => "every bundle holds the next CA: the overlap begins",
            Self::Switch => "the next CA signs",
            Self::Redate => "the time of the last switch was no good, and is now",
            Self::Retire => "no leaf of an old CA is served any more: they leave the bundles",
            Self::Rest(_) => "nothing",
        }
    }
}

/// The next step.
pub fn next(seen: &Seen<'_>, timing: &Timing) -> Step {
    let State { current, next, .. } = seen.state;
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
        (_, Some(_)) if seen.unchanged >= timing.overlap => Step::Switch,
        (_, Some(_)) => Step::Rest((timing.overlap - seen.unchanged).min(LOOK_AGAIN)),
        (Some(current), None) => settled(seen, &current.certificate, timing),
    }
}

/// Whether every bundle vouches for a CA.
pub fn all_hold(bundles: &[Bundle], certificate: &Certificate) -> bool {
    bundles.iter().all(|bundle| bundle.holds(certificate))
}

/// Why a call to a replica that serves a leaf of this state would not be trusted.
pub fn unready(state: &State, bundles: &[Bundle], now: OffsetDateTime) -> Option<String> {
    let Some(current) = &state.current else {
        return Some("there is no CA yet that every caBundle of our webhooks holds".to_owned());
    };
    let certificate = &current.certificate;
    if !certificate.holds(now) {
        return Some(format!(
            "its CA is not good now, only until {}; another one is on its way",
            certificate.expires()
        ));
    }
    let lacks = !all_hold(bundles, certificate);
    lacks.then(|| "a caBundle of our webhooks does not hold the CA yet".to_owned())
}

/// What bundles hold and is not `wanted` there, as many as there is room for: those first that stand first, as we write what
/// signs before what signed, and that the last one first. What has expired is among them, as it may be this clock
/// that is wrong; and it says nothing when one was made, where clocks differed.
fn unknown(seen: &Seen<'_>, wanted: &[Certificate]) -> Vec<Certificate> {
    let held = seen.bundles.iter().flat_map(|bundle| bundle.0.iter().enumerate());
    let mut held: Vec<_> = held.filter(|(_, one)| !wanted.contains(one)).collect();
    held.sort_by(|(at, a), (other, b)| at.cmp(other).then_with(|| b.due().cmp(&a.due())).then_with(|| a.cmp(b)));
    let mut unknown: Vec<Certificate> = Vec::new();
    for (_, one) in held {
        if !unknown.contains(one) {
            unknown.push(one.clone());
        }
    }
    unknown.truncate(MOST_OLD.saturating_sub(seen.state.old.len()));
    unknown
}

/// While bundles hold nothing that the leaves of others could need.
fn first(unchanged: Duration) -> Step {
    if unchanged > Duration::ZERO { Step::Switch } else { Step::Rest(MOMENT) }
}

/// While no change is under way and every bundle is right.
fn settled(seen: &Seen<'_>, current: &Certificate, timing: &Timing) -> Step {
    let State { old, switched, .. } = seen.state;
    if current.is_due(seen.now) || seen.asked && old.len() < MOST_OLD {
        return Step::Prepare;
    }
    if old.is_empty() {
        return Step::Rest((current.due() - seen.now).min(LOOK_AGAIN));
    }
    let Some(switched) = switched.filter(|switched| *switched <= seen.now + timing.overlap) else {
        return Step::Redate;
    };
    // The second is for a clock that jumped ahead: replicas that follow have signed anew by then.
    let left = (switched + timing.retirement() - seen.now).max(timing.overlap - seen.unchanged);
    if left <= Duration::ZERO { Step::Retire } else { Step::Rest(left.min(LOOK_AGAIN)) }
}

impl State {
    /// The state after a step that needs no new CA.
    #[must_use]
    pub fn after(&self, step: &Step, now: OffsetDateTime) -> Self {
        let mut after = self.clone();
        match step {
            Step::Keep(kept) => after.old.extend(kept.iter().cloned()),
            Step::Withdraw => after.set_published(None),
            Step::Announce => after.set_published(Some(now)),
            Step::Switch => after.switch(now),
            Step::Redate => after.switched = Some(now),
            Step::Retire => (after.old, after.switched) = (Vec::new(), None),
            Step::Prepare | Step::Publish(_) | Step::Rest(_) => {}
        }
        after
    }

    /// The state in which `authority` is the next CA.
    #[must_use]
    pub fn prepared(&self, authority: Authority) -> Self {
        Self { next: Some(Next { authority, published: None }), ..self.clone() }
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
