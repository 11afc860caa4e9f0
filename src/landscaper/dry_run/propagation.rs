//! Dry run reaches everything below a root: each object says what its root says, whoever writes it and in what order.
//!
//! Landscaper replaces the annotations of sub-installations at every pass, merges those of Executions and DeployItems, and
//! knows nothing of ours, so each of its writes is mended here. An object that would come without its mark would be
//! deployed for real: one whose root cannot be read is refused, and so is everything while nobody answers.
//!
//! In mode `apply`, DeployItems in dry run are routed past their deployers too, if the dry-run deployer processes their
//! type. `apply` is the default where the configuration has the section `dryRun`.

use super::configuration::DryRuns;
use super::following::{Following, annotations, following, route};
use super::lineage::Replaced;
use super::mark::Mark;
use super::{DRY_RUN_ANNOTATION, WRITES, marks_and_spec};
use crate::admission::patch::Draft;
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::{Reference, View};
use crate::landscaper::deployer::responsibility::Route;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS, EXECUTIONS, INSTALLATIONS};
use crate::rule::{Match, Mode, Mutated, Mutator, Outage, Spared};

/// What belongs to nothing has nothing to follow, so that people and pipelines can write roots while nobody answers. A
/// reference to anything of Landscaper's counts as belonging to it: that is more than [`mark::owner`](super::mark::owner)
/// sees.
static ROOTS: Spared = Spared {
    name: "roots",
    expression: "!has(object.metadata.ownerReferences) ||
           object.metadata.ownerReferences.all(owner, !owner.apiVersion.startsWith('landscaper.gardener.cloud/'))",
};

static SCOPE: [Match; 3] = [
    kinds::matches(&INSTALLATIONS, WRITES, Outage::RefuseUnless(&ROOTS)).reading(&[]),
    kinds::matches(&EXECUTIONS, WRITES, Outage::Refuse).reading(&[]),
    kinds::matches(&DEPLOY_ITEMS, WRITES, Outage::Refuse).reading(&[&["spec", "type"]]),
];

/// Gives an object the marks of its root.
pub(super) static MUTATOR: Mutator = Mutator {
    name: super::MUTATOR,
    family: "DR",
    summary: "the dry-run annotations of the root on every sub-installation, Execution and DeployItem below it",
    scope: &SCOPE,
    looks_up: &[&INSTALLATIONS, &EXECUTIONS],
    confirm: Some(confirm),
    mode: Mode::Annotate,
    mutate,
};

fn confirm(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    following(request.object(), &request.namespace, view).1.into_iter().collect()
}

fn mutate(request: &Request<'_>, view: &View<'_>, mode: Mode, draft: &mut Draft<'_>) -> Mutated {
    let object = request.object();
    let keeps_away = mode == Mode::Apply && kinds::is(&DEPLOY_ITEMS, request) && is_processed(request, view);
    match following(object, &request.namespace, view).0 {
        Following::Itself => {
            if let Some((key, text)) = route(object, Mark::of(object).is_dry_run(), keeps_away) {
                draft.annotate(key, text);
            }
            Ok(Vec::new())
        }
        Following::Root(root) => {
            for (key, text) in annotations(object, root.value(), keeps_away) {
                draft.annotate(key, text);
            }
            Ok(overruled(request, Mark::of(root.value()).inherited(), root.name()))
        }
        Following::Unreadable(reference) => unreadable(request, reference.kind.kind, &reference.name),
        Following::Orphan(reference) => orphan(request, &reference),
        Following::Replaced(owner) => replaced(request, &owner),
    }
}

/// Whether the dry-run deployer processes items of this type. An item that is routed to it and that it does not process
/// would wait for nobody.
fn is_processed(request: &Request<'_>, view: &View<'_>) -> bool {
    DryRuns::of(view).processes(Route::specified(request.object()).type_name)
}

/// Tells those who marked an object themselves that its root decides.
fn overruled(request: &Request<'_>, mark: Mark<'_>, root: &str) -> Vec<String> {
    let (asked, before) = (Mark::of(request.object()), Mark::of(request.old_object()));
    if asked.dry_run.is_none() || asked.dry_run == mark.dry_run || asked.dry_run == before.dry_run {
        return Vec::new();
    }
    vec![format!("{DRY_RUN_ANNOTATION} follows the root, Installation {root:?}: annotate that one")]
}

/// A write that neither changes the marks nor what is to be done deploys nothing new.
fn changes_nothing(request: &Request<'_>) -> bool {
    let (Some(before), Some(after)) = (request.old_object.whole(), request.object.whole()) else { return false };
    request.operation == Operation::Update && marks_and_spec(before) == marks_and_spec(after)
}

fn unreadable(request: &Request<'_>, kind: &str, name: &str) -> Mutated {
    if changes_nothing(request) && Mark::of(request.object()).is_dry_run() {
        return Ok(Vec::new());
    }
    let message = format!("{kind} {name:?}, to which this belongs, could not be read: it may be in dry run");
    refuse(message, "try again; without knowing, this would be deployed for real")
}

fn orphan(request: &Request<'_>, reference: &Reference) -> Mutated {
    if changes_nothing(request) {
        return Ok(Vec::new());
    }
    let message = format!("{} {:?}, to which this belongs, does not exist", reference.kind.kind, reference.name);
    refuse(message, "create that one first, or leave the owner reference out")
}

fn replaced(request: &Request<'_>, owner: &Replaced) -> Mutated {
    if changes_nothing(request) {
        return Ok(Vec::new());
    }
    let Replaced { by, uid, present } = owner;
    let message = format!(
        "{} {:?}, to which this belongs, was deleted: the owner reference has uid {uid:?}, and the object of that name has \
         uid {present:?}",
        by.kind.kind, by.name
    );
    refuse(message, "write the uid of the present object into the owner reference, or leave the reference out")
}

fn refuse(message: String, help: &str) -> Mutated {
    let field = FieldPath::of(["metadata", "ownerReferences"]);
    Err(Box::new(Finding::new("DR", Level::Deny, field, message).help(help)))
}
