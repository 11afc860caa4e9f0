//! Decides about admission requests: selects the matching rules, runs them, and applies levels and exemptions.
//!
//! ```text
//! request ─► rules that match it ─► live reads ─► mutators or rules ─► levels, exemptions ─► verdict
//! ```
//!
//! A decision depends only on the request, the catalog, the policy, live reads, kustomize trees and the current time.

mod deliver;
pub mod pages;
mod policy;
pub mod registration;
mod registry;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use futures::future::{BoxFuture, join_all};
use time::OffsetDateTime;

use crate::admission::patch::Draft;
use crate::admission::{Decide, Finding, Level, Metadata, Operation, Phase, Refusal, Request, TypedView, Verdict};
use crate::catalog::{Catalog, Declaration, LiveRead, LiveReads, Lookups, Reference, Settings, View};
use crate::kustomize::delivery::{Delivery, Inline, Judge};
use crate::rule::{Match, Mode, Mutator, Rule, RuleInfo};

pub use policy::{Exemption, NamespaceLevels, Policy, SKIP_LABEL};
use registry::Matched;
pub use registry::Registry;

/// Timeout of live reads if a request has no deadline.
const LIVE_READ_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of rounds of live reads in a decision. Each round may depend on the objects from the previous round.
/// For example, one round reads an object, and the next round reads its parent.
const LIVE_READ_ROUNDS: usize = 8;
/// Time reserved before the deadline for writing the response.
const ANSWER_MARGIN: Duration = Duration::from_millis(50);

/// The annotation of the dry-run requests that `portcullis verify` sends to check whether a server answers. The server
/// answers such a request with a warning.
pub const VERIFY_ANNOTATION: &str = "portcullis.dev/verify";

/// The gate, which decides about admission requests. It runs the rules and mutators of its registry. If the object in a
/// request contains or refers to a kustomization, the gate also checks whether kustomize can build it.
pub struct Gate {
    registry: Registry,
    policy: ArcSwap<Policy>,
    catalog: Arc<Catalog>,
    trees: Arc<dyn Judge>,
    clock: Clock,
}

/// A source of the current time, which determines whether exemptions have expired.
type Clock = Arc<dyn Fn() -> OffsetDateTime + Send + Sync>;

impl Gate {
    /// Creates a gate that runs the rules of `registry` and looks up objects in `catalog`. The gate checks a kustomize
    /// tree only if the object in a request contains the files of the tree. To check trees that must be fetched, use
    /// [`Gate::with_trees`].
    pub fn new(registry: Registry, policy: Policy, catalog: Arc<Catalog>) -> Self {
        catalog.choose(policy.composites.clone());
        let (policy, trees) = (ArcSwap::from_pointee(policy), Arc::new(Inline));
        Self { registry, policy, catalog, trees, clock: Arc::new(OffsetDateTime::now_utc) }
    }

    /// Replaces the component that builds and checks kustomize trees, which are folders with kustomization files. The
    /// default component checks a tree only if the object in the request contains the files of the tree. Another
    /// component can fetch the files, for example from Flux artifacts.
    #[must_use]
    pub fn with_trees(self, trees: Arc<dyn Judge>) -> Self {
        Self { trees, ..self }
    }

    /// Sets the source of the current time, which determines whether exemptions have expired. The default is the system
    /// clock.
    #[must_use]
    pub fn with_clock(self, clock: impl Fn() -> OffsetDateTime + Send + Sync + 'static) -> Self {
        Self { clock: Arc::new(clock), ..self }
    }

    /// Returns the registry of rules and mutators.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the catalog in which rules look up objects.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Returns the current policy: the configured levels, exemptions and modes.
    pub fn policy(&self) -> Arc<Policy> {
        self.policy.load_full()
    }

    /// Replaces the policy. Also tells the catalog which kinds of composites the new policy selects.
    pub fn set_policy(&self, policy: Policy) {
        self.catalog.choose(policy.composites.clone());
        self.policy.store(Arc::new(policy));
    }

    /// Returns everything that runs for a request in the admission phase `phase`: mutators or rules, and checks of
    /// kustomization files. `None` if none of them applies to the request.
    fn matching(&self, phase: Phase, request: &Request<'_>) -> Option<Matching> {
        let declared_as = self.declared_as(request);
        let deliveries = self.registry.deliveries_for(request);
        let matching = match phase {
            Phase::Mutate => Matching {
                rules: Vec::new(),
                mutators: self.registry.mutators_for(request, declared_as).collect(),
                deliveries: deliveries.filter(|(delivery, _)| delivery.withhold.is_some()).collect(),
            },
            Phase::Validate => Matching {
                rules: self.registry.rules_for(request, declared_as).collect(),
                mutators: Vec::new(),
                deliveries: deliveries.collect(),
            },
        };
        (!matching.is_empty()).then_some(matching)
    }

    /// Returns the [`Declaration`] of the kind in the request, if an object in the cluster declares this kind. For
    /// example, CompositeResourceDefinitions declare kinds of composites.
    fn declared_as(&self, request: &Request<'_>) -> Option<&'static Declaration> {
        let resource = &request.resource;
        self.catalog.declared_as(&resource.group, &resource.plural).map(|(declaration, _)| declaration)
    }

    /// Decides whether to admit a request, and how to change it. Runs the rules, mutators and checks of kustomization
    /// files that apply to the request in this phase. If none applies, admits the request unchanged.
    pub async fn decide(&self, phase: Phase, request: &Request<'_>) -> Verdict {
        match self.matching(phase, request) {
            Some(matching) => self.decide_by(matching, phase, request).await,
            None => Verdict::default(),
        }
    }

    async fn decide_by(&self, matching: Matching, phase: Phase, request: &Request<'_>) -> Verdict {
        let policy = self.policy.load();
        let mut verdict = match phase {
            Phase::Mutate => self.mutate(matching, request, &policy).await,
            Phase::Validate => self.validate(matching, request, &policy).await,
        };
        if phase == Phase::Validate && request.dry_run && verdict.refusal.is_none() && is_verify_request(request) {
            verdict.verification = Some(concat!("portcullis ", env!("CARGO_PKG_VERSION"), " answers").to_owned());
        } else if request.user.is_service_account() && !policy.warn_service_accounts {
            verdict.is_quiet = !verdict.warnings().is_empty();
        }
        verdict
    }

    async fn mutate(&self, matching: Matching, request: &Request<'_>, policy: &Policy) -> Verdict {
        let Matching { mut mutators, mut deliveries, .. } = matching;
        mutators.retain(|(mutator, _)| policy.mode(mutator) != Mode::Off);
        deliveries.retain(|(delivery, _)| policy.max_level(delivery, &request.namespace) == Level::Deny);
        let matchers = mutators.iter().map(|(_, one)| *one).chain(deliveries.iter().map(|(_, one)| *one));
        if let Err(refusal) = read(request, matchers) {
            return Verdict::refused(refusal);
        }
        if request.object().is_null() || request.is_deleting() || policy.skips(request) {
            return Verdict::default();
        }
        let of_mutators = mutators.iter().filter_map(|(mutator, _)| mutator.live_reads);
        let of_deliveries = deliveries.iter().filter_map(|(delivery, _)| delivery.live_reads);
        let wants: Vec<_> = of_mutators.chain(of_deliveries).collect();
        let lookups = Lookups::default();
        let live = self.read_live(request, &wants, &policy.settings, &lookups).await;
        let view = View::new(&self.catalog, &live).under(&policy.settings).remembering(&lookups);
        let mut draft = Draft::new(request.object());
        let mut verdict = Verdict::default();
        for (mutator, _) in mutators {
            match (mutator.mutate)(request, &view, policy.mode(mutator), &mut draft) {
                Ok(notices) => verdict.notices.extend(notices),
                Err(finding) => verdict.findings.push(*finding),
            }
        }
        // `withhold` writes the denials of all checks into the object. So it is called once, after the last check.
        let withhold = deliveries.iter().find_map(|(delivery, _)| delivery.withhold);
        let (now, mut denials) = ((self.clock)(), Vec::new());
        for (delivery, _) in deliveries {
            let found =
                deliver::DeliveryContext { gate: self, policy, request, view: &view, now }.findings_of(delivery).await;
            denials.extend(found.into_iter().filter(|finding| finding.level == Level::Deny));
        }
        if let Some(withhold) = withhold {
            withhold(request, &denials, &mut draft);
        }
        verdict.patch = draft.patch();
        verdict
    }

    async fn validate(&self, matching: Matching, request: &Request<'_>, policy: &Policy) -> Verdict {
        let Matching { mut rules, deliveries, .. } = matching;
        rules.retain(|(rule, _)| policy.level(rule, &request.namespace) != Level::Off);
        let matchers = rules.iter().map(|(_, one)| *one).chain(deliveries.iter().map(|(_, one)| *one));
        if let Err(refusal) = read(request, matchers) {
            return Verdict::refused(refusal);
        }
        let of_rules = rules.iter().filter_map(|(rule, _)| rule.live_reads);
        let judging = deliveries.iter().filter(|(row, _)| policy.max_level(row, &request.namespace) != Level::Off);
        let wants: Vec<_> = of_rules.chain(judging.filter_map(|(delivery, _)| delivery.live_reads)).collect();
        let (shared, lookups) = (TypedView::default(), Lookups::default());
        let live = self.read_live(request, &wants, &policy.settings, &lookups).await;
        let view = View::new(&self.catalog, &live).under(&policy.settings).sharing(&shared).remembering(&lookups);
        let now = (self.clock)();
        let mut findings = Vec::new();
        for (rule, _) in rules {
            let found = (rule.check)(request, &view).into_iter();
            findings.extend(found.map(|finding| levelled(finding, &rule.info, request, policy, now)));
        }
        for (delivery, _) in deliveries {
            let found =
                deliver::DeliveryContext { gate: self, policy, request, view: &view, now }.findings_of(delivery).await;
            deliver::add(&mut findings, found);
        }
        Verdict { findings, ..Verdict::default() }
    }

    /// Reads objects from the API server. The functions in `wants` return the objects to read. They are called again
    /// after each round of reads, because they may need further objects that depend on the results. Ends when they
    /// return no new objects, or after [`LIVE_READ_ROUNDS`] rounds. If a read exceeds the deadline, its result is
    /// unknown.
    async fn read_live(
        &self,
        request: &Request<'_>,
        wants: &[Want],
        settings: &Settings,
        lookups: &Lookups,
    ) -> LiveReads {
        let mut live = LiveReads::new();
        let live_read_deadline = live_read_deadline(request);
        for _ in 0..LIVE_READ_ROUNDS {
            let view = View::new(&self.catalog, &live).under(settings).remembering(lookups);
            let mut wanted: Vec<Reference> = wants.iter().flat_map(|want| want(request, &view)).collect();
            let mut seen = HashSet::new();
            wanted.retain(|reference| !live.contains_key(reference) && seen.insert(reference.clone()));
            if wanted.is_empty() {
                break;
            }
            live.extend(
                join_all(wanted.into_iter().map(|reference| self.live_read(reference, live_read_deadline))).await,
            );
        }
        live
    }

    async fn live_read(&self, reference: Reference, live_read_deadline: Instant) -> (Reference, LiveRead) {
        let asked = self.catalog.read_live(&reference);
        let read = match self.catalog.within(live_read_deadline, asked).await {
            Some(Ok(Some(stored))) => LiveRead::Exists(stored),
            Some(Ok(None)) => LiveRead::Gone,
            Some(Err(error)) => LiveRead::Unknown(error),
            None => LiveRead::Unknown("the API server did not answer in time".to_owned()),
        };
        (reference, read)
    }
}

impl Decide for Gate {
    fn decision<'a>(&'a self, phase: Phase, request: &'a Request<'a>) -> Option<BoxFuture<'a, Verdict>> {
        let matching = self.matching(phase, request)?;
        Some(Box::pin(self.decide_by(matching, phase, request)))
    }
}

/// Everything that Portcullis runs for one admission request: rules, mutators, and checks of kustomization files. These
/// checks are in the field `deliveries`, because the configuration file has a key of this name for them.
struct Matching {
    rules: Vec<Matched<Rule>>,
    mutators: Vec<Matched<Mutator>>,
    deliveries: Vec<Matched<Delivery>>,
}

impl Matching {
    fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.mutators.is_empty() && self.deliveries.is_empty()
    }
}

fn is_verify_request(request: &Request<'_>) -> bool {
    Metadata::of(request.object()).annotations().is_some_and(|annotations| annotations.contains_key(VERIFY_ANNOTATION))
}

/// Returns the time by which live reads must end. This time is shortly before the deadline of the request. For a
/// request without a deadline, it is [`LIVE_READ_TIMEOUT`] from now.
fn live_read_deadline(request: &Request<'_>) -> Instant {
    let live_read_deadline = request.deadline.and_then(|at| at.checked_sub(ANSWER_MARGIN));
    live_read_deadline.unwrap_or_else(|| Instant::now() + LIVE_READ_TIMEOUT)
}

/// Parses the objects in the request. Parses only the parts that the rules with these `matchers` need. Fails if an
/// object cannot be parsed.
fn read(request: &Request<'_>, matchers: impl Iterator<Item = &'static Match>) -> Result<(), Refusal> {
    let parts: Option<Vec<_>> = matchers.map(|one| one.reads).collect();
    let parts = parts.map(|mut parts| {
        // Most rules of a kind read the same parts.
        parts.dedup_by(|one, before| std::ptr::eq(*one, *before));
        parts.concat()
    });
    request.read(parts.as_deref()).map_err(|(which, error)| {
        let kind = &request.resource.kind;
        Refusal::Unreadable(format!("request.{which} of kind {kind} cannot be read: {error}"))
    })
}

type Want = fn(&Request<'_>, &View<'_>) -> Vec<Reference>;

/// Returns `finding` with its final level. This level depends on the configured level of the rule `info`, the skip
/// label, and the exemptions that apply at the time `now`.
fn levelled(
    mut finding: Finding,
    info: &RuleInfo,
    request: &Request<'_>,
    policy: &Policy,
    now: OffsetDateTime,
) -> Finding {
    let configured = policy.level_of(info.id, info.family(), info.level, &request.namespace);
    finding.level = Policy::levelled(finding.level, info.level, configured);
    // Updates of an object that is being deleted are not denied, so that finalizers can be removed. An update of its
    // status cannot remove them.
    let is_object = request.resource.subresource.is_empty();
    if is_object && request.operation == Operation::Update && request.is_deleting() {
        finding.level = finding.level.min(Level::Warn);
    }
    if policy.skips(request) || policy.exempts(info, request, now) {
        finding.is_exempt = finding.level > Level::Off;
        finding.level = finding.level.min(Level::Audit);
    }
    finding
}
