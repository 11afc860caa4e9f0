//! The mutator that copies the dry-run annotations of a root to every object below it.
//!
//! Landscaper does not copy these annotations. Each reconciliation by Landscaper replaces the annotations of
//! sub-installations, and merges new annotations into those of Executions and DeployItems. The mutator therefore
//! corrects every write. Without the dry-run annotation, an object below a root in dry run would be deployed. So
//! requests are denied if the root cannot be read, or if the webhook does not answer.
//!
//! In mode `apply`, the mutator also routes DeployItems in dry run to the dry-run deployer, if the dry-run deployer
//! processes their type. `apply` is the default if the configuration has the section `dryRun`.

use super::annotations_and_spec;
use super::configuration::DryRuns;
use super::inheritance::{Inheritance, inheritance, route, wanted_annotations};
use super::owner_chain::Replaced;
use crate::admission::patch::Draft;
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::{Reference, View};
use crate::landscaper::annotations::DRY_RUN_ANNOTATION;
use crate::landscaper::deployer::responsibility::Route;
use crate::landscaper::dry_run_annotations::DryRunAnnotations;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS, EXECUTIONS, INSTALLATIONS, WRITES};
use crate::rule::{FailurePolicy, Match, MatchCondition, Mode, Mutated, Mutator};

/// Match condition that is true for root Installations, which have no owner. If the webhook does not answer, writes of
/// root Installations are admitted, and writes of other Installations are denied.
///
/// The mutator copies dry-run annotations from a root to the objects below it. A root Installation inherits nothing, so
/// it can be written even if the webhook does not answer. Unlike [`owner`](crate::landscaper::owner::owner), the
/// condition regards objects of every kind in Landscaper's API group as owners.
static ROOTS: MatchCondition = MatchCondition {
    name: "roots",
    expression: "!has(object.metadata.ownerReferences) ||
           object.metadata.ownerReferences.all(owner, !owner.apiVersion.startsWith('landscaper.gardener.cloud/'))",
};

static MATCHERS: [Match; 3] = [
    kinds::matches(&INSTALLATIONS, WRITES, FailurePolicy::FailUnless(&ROOTS)).reading(&[]),
    kinds::matches(&EXECUTIONS, WRITES, FailurePolicy::Fail).reading(&[]),
    kinds::matches(&DEPLOY_ITEMS, WRITES, FailurePolicy::Fail).reading(&[&["spec", "type"]]),
];

/// The mutator `dry-run`, which copies the dry-run annotations of a root to the objects below it.
pub(super) static MUTATOR: Mutator = Mutator {
    name: super::MUTATOR,
    family: "DR",
    summary: "the dry-run annotations of the root on every sub-installation, Execution and DeployItem below it",
    matchers: &MATCHERS,
    looks_up: &[&INSTALLATIONS, &EXECUTIONS],
    live_reads: Some(live_reads),
    mode: Mode::Annotate,
    mutate,
};

fn live_reads(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    inheritance(request.object(), &request.namespace, view).1.into_iter().collect()
}

fn mutate(request: &Request<'_>, view: &View<'_>, mode: Mode, draft: &mut Draft<'_>) -> Mutated {
    let object = request.object();
    let is_routed = mode == Mode::Apply && kinds::is(&DEPLOY_ITEMS, request) && is_processed(request, view);
    match inheritance(object, &request.namespace, view).0 {
        Inheritance::Itself => {
            if let Some((key, text)) = route(object, DryRunAnnotations::of(object).is_dry_run(), is_routed) {
                draft.annotate(key, text);
            }
            Ok(Vec::new())
        }
        Inheritance::Root(root) => {
            for (key, text) in wanted_annotations(object, root.value(), is_routed) {
                draft.annotate(key, text);
            }
            Ok(overruled(request, DryRunAnnotations::of(root.value()).inherited(), root.name()))
        }
        Inheritance::Unreadable(reference) => unreadable(request, reference.kind.kind, &reference.name),
        Inheritance::Orphan(reference) => orphan(request, &reference),
        Inheritance::Replaced(owner) => replaced(request, &owner),
    }
}

/// Reports whether the dry-run deployer processes the type of the DeployItem in a request. Otherwise, the DeployItem
/// must not be routed to the dry-run deployer, because no deployer would pick it up before the pickup timeout.
fn is_processed(request: &Request<'_>, view: &View<'_>) -> bool {
    DryRuns::of(view).processes(Route::specified(request.object()).type_name)
}

/// Returns a warning if a request sets the dry-run annotation of an object to a new value that differs from the
/// inherited value. `inherited` contains the annotations that the object inherits from its root Installation. `root` is
/// the name of this Installation.
fn overruled(request: &Request<'_>, inherited: DryRunAnnotations<'_>, root: &str) -> Vec<String> {
    let (asked, before) = (DryRunAnnotations::of(request.object()), DryRunAnnotations::of(request.old_object()));
    if asked.dry_run.is_none() || asked.dry_run == inherited.dry_run || asked.dry_run == before.dry_run {
        return Vec::new();
    }
    vec![format!("{DRY_RUN_ANNOTATION} is inherited from the root Installation {root:?}: annotate the root")]
}

/// Reports whether an update leaves the dry-run annotations and the spec unchanged. Such an update deploys nothing.
fn changes_nothing(request: &Request<'_>) -> bool {
    let (Some(before), Some(after)) = (request.old_object.whole(), request.object.whole()) else { return false };
    request.operation == Operation::Update && annotations_and_spec(before) == annotations_and_spec(after)
}

fn unreadable(request: &Request<'_>, kind: &str, name: &str) -> Mutated {
    if changes_nothing(request) && DryRunAnnotations::of(request.object()).is_dry_run() {
        return Ok(Vec::new());
    }
    let message = format!("the owner, {kind} {name:?}, could not be read: it may be in dry run");
    deny(message, "try again; without the annotation of its owner, this object would be deployed")
}

fn orphan(request: &Request<'_>, reference: &Reference) -> Mutated {
    if changes_nothing(request) {
        return Ok(Vec::new());
    }
    let message = format!("the owner, {} {:?}, does not exist", reference.kind.kind, reference.name);
    deny(message, "create the owner first, or remove the owner reference")
}

fn replaced(request: &Request<'_>, owner: &Replaced) -> Mutated {
    if changes_nothing(request) {
        return Ok(Vec::new());
    }
    let Replaced { by, uid, present } = owner;
    let message = format!(
        "the owner, {} {:?}, was deleted: the owner reference has uid {uid:?}, and the object of that name has \
         uid {present:?}",
        by.kind.kind, by.name
    );
    deny(message, "write the uid of the existing object into the owner reference, or remove the reference")
}

fn deny(message: String, help: &str) -> Mutated {
    let field = FieldPath::of(["metadata", "ownerReferences"]);
    Err(Box::new(Finding::new("DR", Level::Deny, field, message).help(help)))
}
