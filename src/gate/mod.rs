//! The gate: which rules see which request, and what follows from what they find.
//!
//! ```text
//! request ─► rows whose scope covers it ─► confirmed reads ─► mutators or rules ─► levels, exemptions ─► verdict
//! ```
//!
//! Deciding is a pure function of the request, the catalog and the policy, but for the confirmed reads.

mod deliver;
pub mod pages;
mod policy;
pub mod registration;
mod registry;

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use futures::future::join_all;
use time::OffsetDateTime;

use crate::admission::patch::Draft;
use crate::admission::{Finding, Level, Operation, Phase, Refusal, Request, Verdict};
use crate::catalog::{Catalog, Confirmation, Confirmed, Declaration, Reference, Settings, View};
use crate::kustomize::delivery::{Delivery, Inline, Judge};
use crate::rule::{Match, Mode, Mutator, Rule};

pub use policy::{Exemption, NamespaceLevels, Policy, SKIP_LABEL};
pub use registry::{Registry, Row};

/// How long confirmed reads may take where a request names no deadline.
const CONFIRM_WITHIN: Duration = Duration::from_secs(2);
/// How often rules may ask for more confirmed reads: an object, its parent, what that belongs to, and so on.
const CONFIRM_ROUNDS: usize = 8;
/// What is kept of a deadline for writing the answer.
const ANSWER_MARGIN: Duration = Duration::from_millis(50);

/// In a dry run an object with this annotation asks whether anybody answers, and is told so in a warning: for
/// `portcullis verify`.
pub const VERIFY_ANNOTATION: &str = "portcullis.dev/verify";

/// Decides about requests.
pub struct Gate {
    registry: Registry,
    policy: ArcSwap<Policy>,
    catalog: Arc<Catalog>,
    trees: Arc<dyn Judge>,
    clock: Clock,
}

/// Tells the time, by which exemptions expire.
type Clock = Arc<dyn Fn() -> OffsetDateTime + Send + Sync>;

impl Gate {
    /// A gate of these rules over a catalog. It judges trees that are in objects, and fetches none.
    pub fn new(registry: Registry, policy: Policy, catalog: Arc<Catalog>) -> Self {
        catalog.choose(policy.composites.clone());
        let (policy, trees) = (ArcSwap::from_pointee(policy), Arc::new(Inline));
        Self { registry, policy, catalog, trees, clock: Arc::new(OffsetDateTime::now_utc) }
    }

    /// Lets `trees` fetch and judge trees.
    #[must_use]
    pub fn with_trees(self, trees: Arc<dyn Judge>) -> Self {
        Self { trees, ..self }
    }

    /// Goes by another clock than the system's.
    #[must_use]
    pub fn with_clock(self, clock: impl Fn() -> OffsetDateTime + Send + Sync + 'static) -> Self {
        Self { clock: Arc::new(clock), ..self }
    }

    /// The rules and mutators.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// What rules look up.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// What it decides by.
    pub fn policy(&self) -> Arc<Policy> {
        self.policy.load_full()
    }

    /// Decides by another policy from now on.
    pub fn set_policy(&self, policy: Policy) {
        self.catalog.choose(policy.composites.clone());
        self.policy.store(Arc::new(policy));
    }

    /// Whether any rule or mutator looks at such a request.
    pub fn handles(&self, phase: Phase, request: &Request<'_>) -> bool {
        let declared_as = self.declared_as(request);
        match phase {
            Phase::Mutate => {
                self.registry.mutators_for(request, declared_as).next().is_some()
                    || self.registry.deliveries_for(request).any(|delivery| delivery.withhold.is_some())
            }
            Phase::Validate => {
                self.registry.rules_for(request, declared_as).next().is_some()
                    || self.registry.deliveries_for(request).next().is_some()
            }
        }
    }

    /// How the kind of a request was declared, where it was.
    fn declared_as(&self, request: &Request<'_>) -> Option<&'static Declaration> {
        let resource = &request.resource;
        self.catalog.declared_as(&resource.group, &resource.plural).map(|(declaration, _)| declaration)
    }

    /// Decides about a request.
    pub async fn decide(&self, phase: Phase, request: &Request<'_>) -> Verdict {
        let policy = self.policy.load();
        let mut verdict = match phase {
            Phase::Mutate => self.mutate(request, &policy).await,
            Phase::Validate => self.validate(request, &policy).await,
        };
        if phase == Phase::Validate && request.dry_run && verdict.refusal.is_none() && asks_who_answers(request) {
            verdict.verification = Some(concat!("portcullis ", env!("CARGO_PKG_VERSION"), " answers").to_owned());
        } else if request.user.is_service_account() && !policy.warn_service_accounts {
            verdict.is_quiet = !verdict.warnings().is_empty();
        }
        verdict
    }

    async fn mutate(&self, request: &Request<'_>, policy: &Policy) -> Verdict {
        let active = |mutator: &&&Mutator| policy.mode(mutator) != Mode::Off;
        let declared_as = self.declared_as(request);
        let mutators: Vec<_> = self.registry.mutators_for(request, declared_as).filter(active).copied().collect();
        let withholds = |delivery: &&&Delivery| delivery.withhold.is_some() && policy.most(delivery) == Level::Deny;
        let deliveries: Vec<_> = self.registry.deliveries_for(request).filter(withholds).copied().collect();
        let scopes = mutators.iter().map(|mutator| mutator.scope).chain(deliveries.iter().map(|row| row.scope));
        if let Err(refusal) = read(request, declared_as, scopes) {
            return Verdict::refused(refusal);
        }
        if request.object().is_null() || request.is_being_deleted() || policy.skips(request) {
            return Verdict::default();
        }
        let wants: Vec<_> = mutators.iter().filter_map(|mutator| mutator.confirm).collect();
        let confirmed = self.confirm(request, &wants, &policy.settings).await;
        let view = View::new(&self.catalog, &confirmed).under(&policy.settings);
        let mut draft = Draft::new(request.object());
        let mut verdict = Verdict::default();
        for mutator in mutators {
            match (mutator.mutate)(request, &view, policy.mode(mutator), &mut draft) {
                Ok(notices) => verdict.notices.extend(notices),
                Err(finding) => verdict.findings.push(*finding),
            }
        }
        let now = (self.clock)();
        for delivery in deliveries {
            let found = deliver::Round { gate: self, policy, request, view: &view, now }.of(delivery).await;
            let denials: Vec<_> = found.into_iter().filter(|finding| finding.level == Level::Deny).collect();
            if let Some(withhold) = delivery.withhold {
                withhold(request, &denials, &mut draft);
            }
        }
        verdict.patch = draft.patch();
        verdict
    }

    async fn validate(&self, request: &Request<'_>, policy: &Policy) -> Verdict {
        let active = |rule: &&&Rule| policy.level(rule, &request.namespace) != Level::Off;
        let declared_as = self.declared_as(request);
        let rules: Vec<_> = self.registry.rules_for(request, declared_as).filter(active).copied().collect();
        let deliveries: Vec<_> = self.registry.deliveries_for(request).copied().collect();
        let scopes = rules.iter().map(|rule| rule.scope).chain(deliveries.iter().map(|delivery| delivery.scope));
        if let Err(refusal) = read(request, declared_as, scopes) {
            return Verdict::refused(refusal);
        }
        let of_rules = rules.iter().filter_map(|rule| rule.confirm);
        let wants: Vec<_> = of_rules.chain(deliveries.iter().filter_map(|delivery| delivery.confirm)).collect();
        let confirmed = self.confirm(request, &wants, &policy.settings).await;
        let view = View::new(&self.catalog, &confirmed).under(&policy.settings);
        let now = (self.clock)();
        let mut findings = Vec::new();
        for rule in rules {
            let found = (rule.check)(request, &view).into_iter();
            findings.extend(found.map(|finding| levelled(finding, Row::Request(rule), request, policy, now)));
        }
        for delivery in deliveries {
            let found = deliver::Round { gate: self, policy, request, view: &view, now }.of(delivery).await;
            deliver::add(&mut findings, found);
        }
        Verdict { findings, ..Verdict::default() }
    }

    /// Asks the API server for what the rules want confirmed, until they want nothing more or time is up.
    async fn confirm(&self, request: &Request<'_>, wants: &[Want], settings: &Settings) -> Confirmed {
        let mut confirmed = Confirmed::new();
        let last = last(request);
        for _ in 0..CONFIRM_ROUNDS {
            let view = View::new(&self.catalog, &confirmed).under(settings);
            let mut wanted: Vec<Reference> = wants.iter().flat_map(|want| want(request, &view)).collect();
            wanted.retain(|reference| !confirmed.contains_key(reference));
            if wanted.is_empty() {
                break;
            }
            confirmed.extend(join_all(wanted.into_iter().map(|reference| self.ask(reference, last))).await);
        }
        confirmed
    }

    async fn ask(&self, reference: Reference, last: Instant) -> (Reference, Confirmation) {
        let asked = self.catalog.confirm(&reference);
        let confirmation = match self.catalog.within(last, asked).await {
            Some(Ok(Some(stored))) => Confirmation::Exists(stored),
            Some(Ok(None)) => Confirmation::Gone,
            Some(Err(error)) => Confirmation::Unknown(error),
            None => Confirmation::Unknown("the API server did not answer in time".to_owned()),
        };
        (reference, confirmation)
    }
}

fn asks_who_answers(request: &Request<'_>) -> bool {
    request
        .object()
        .pointer("/metadata/annotations")
        .is_some_and(|annotations| annotations.get(VERIFY_ANNOTATION).is_some())
}

/// When everything that is asked for has to be there.
fn last(request: &Request<'_>) -> Instant {
    let last = request.deadline.and_then(|at| at.checked_sub(ANSWER_MARGIN));
    last.unwrap_or_else(|| Instant::now() + CONFIRM_WITHIN)
}

/// Reads of the objects what rows with these scopes look at.
fn read(
    request: &Request<'_>,
    declared_as: Option<&Declaration>,
    scopes: impl Iterator<Item = &'static [Match]>,
) -> Result<(), Refusal> {
    let covering = scopes.filter_map(|scope| scope.iter().find(|one| one.covers(request, declared_as)));
    let parts: Option<Vec<_>> = covering.map(|one| one.reads).collect();
    let parts = parts.map(|parts| parts.concat());
    request.read(parts.as_deref()).map_err(|(which, error)| {
        let kind = &request.resource.kind;
        Refusal::Unreadable(format!("request.{which} of kind {kind} cannot be read: {error}"))
    })
}

type Want = fn(&Request<'_>, &View<'_>) -> Vec<Reference>;

/// A finding at the level that the policy gives it.
fn levelled(mut finding: Finding, row: Row, request: &Request<'_>, policy: &Policy, now: OffsetDateTime) -> Finding {
    let configured = policy.level_of(row.id(), row.family(), row.level(), &request.namespace);
    finding.level = Policy::levelled(finding.level, row.level(), configured);
    // The finalizers come off the object itself: a status on its own keeps nothing from being deleted.
    let is_object = request.resource.subresource.is_empty();
    if is_object && request.operation == Operation::Update && request.is_being_deleted() {
        finding.level = finding.level.min(Level::Warn);
    }
    if policy.skips(request) || policy.exempts(row, request, now) {
        finding.is_exempt = finding.level > Level::Off;
        finding.level = finding.level.min(Level::Audit);
    }
    finding
}
