//! Checks which objects Flux would delete because of a new revision of a source, before kustomize-controller sees the
//! revision.
//!
//! A source has one artifact for all its Kustomizations. So if a revision deletes too many objects of one
//! Kustomization, Portcullis withholds the revision from all of them, until users approve the deletions of each
//! Kustomization.

use super::super::deployed::APPLIED;
use super::super::flux_sources::{self, MATCHERS};
use super::super::kustomization::{BY_SOURCE, KUSTOMIZATIONS, Kustomization, SourceRef};
use super::super::rules::gd001;
use super::super::rules::gd002::{self, Excess};
use super::super::withhold::withhold;
use super::super::{
    APPROVAL_ANNOTATION, Artifact, Consequences, DeletionLimits, Delivery, Judged, Look, Plan, Root, RootOwner, limits,
};
use super::{FAMILY, SOURCES};
use crate::admission::json::Lookup as _;
use crate::admission::{Finding, Level, Metadata, Request};
use crate::catalog::{LiveRead, Reference, Stored, View};
use crate::kustomize::identity::ObjectId;

/// Maximum number of Kustomizations for which Portcullis checks what a new revision of their Flux source deletes. Each
/// Kustomization is read from the API server with its inventory. An inventory of 5,000 objects takes about 500 KB. The
/// request that publishes the revision waits for these reads.
const MAX_JUDGED: usize = 100;

/// The check `guard-sources`. It checks which objects Flux deletes because of a new artifact of a source. It is enabled
/// only if `guard.hold` is `source`.
pub(in super::super) static DELIVERY: Delivery = Delivery {
    name: SOURCES,
    family: FAMILY,
    summary: "deletions by new revisions of Flux sources; enabled with `guard: {hold: source}`",
    max_level: Level::Off,
    limited_by: Some(&gd001::RULE),
    matchers: &MATCHERS,
    narrowed: None,
    looks_up: &[&KUSTOMIZATIONS, &APPLIED],
    live_reads: Some(live_reads),
    ahead: None,
    withhold: Some(withhold),
    consequences: Some(&Consequences {
        siblings: |_, _, _| Vec::new(),
        findings: |_, view, (root, judged), _| of_revision(view, root, judged).into_iter().collect(),
        replaces_tree_findings: true,
    }),
    look,
};

/// A source and its new artifact. The request under admission publishes this artifact.
struct Publication {
    source: SourceRef,
    artifact: Artifact,
}

impl Publication {
    /// Returns the Flux source in a request, and its new artifact. `None` if the request contains no new artifact. Also
    /// `None` if the artifact has no revision, because users approve deletions with an annotation that contains the
    /// revision.
    fn of(request: &Request<'_>) -> Option<Self> {
        let (source, artifact) = flux_sources::published(request)?;
        (!artifact.revision.is_empty()).then_some(Self { source, artifact })
    }

    /// Returns references to the Kustomizations that use the source, at most [`MAX_JUDGED`]. The `bool` is `true` if
    /// there are more.
    fn users(&self, view: &View<'_>) -> (Vec<Reference>, bool) {
        let stored = view.indexed_everywhere(&KUSTOMIZATIONS, &BY_SOURCE, &self.source.key(), MAX_JUDGED + 1);
        let reference = |user: &std::sync::Arc<Stored>| Reference::new(&APPLIED, user.namespace(), user.name());
        (stored.iter().take(MAX_JUDGED).map(reference).collect(), stored.len() > MAX_JUDGED)
    }

    /// Returns the folder that the Flux Kustomization `user` builds from the new artifact. `None` if the artifact
    /// cannot cause deletions: the Kustomization has another source, is being deleted, does not prune, or has applied
    /// no objects.
    fn root(&self, user: &Stored) -> Option<Root> {
        let read = Kustomization::of(user.value(), user.namespace())?;
        let prunes = user.value().at(&["spec", "prune"]).and_then(serde_json::Value::as_bool) == Some(true);
        let is_concerned = prunes && read.source == self.source && !Metadata::of(user.value()).is_deleting();
        let has_applied = || user.value().pointer("/status/inventory/entries/0").is_some();
        if is_concerned && has_applied() { flux_sources::root(user, &self.artifact) } else { None }
    }
}

/// Returns references to the Flux Kustomizations that use the source in the request. Portcullis reads these objects
/// from the API server instead of its cache, because it needs their current inventories.
fn live_reads(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    Publication::of(request).map(|publication| publication.users(view).0).unwrap_or_default()
}

fn look(request: &Request<'_>, view: &View<'_>) -> Look {
    let Some(publication) = Publication::of(request) else { return Look::default() };
    let (users, are_more) = publication.users(view);
    let mut look = Look::default();
    for user in users {
        if let Some(LiveRead::Unknown(why)) = view.live_read(&user) {
            let owner = format!("Kustomization {}/{}", user.namespace, user.name);
            look.findings.push(gd002::unknown(&owner, &publication.artifact, why));
        } else if let Some(stored) = view.find(&APPLIED, &user.namespace, &user.name) {
            look.roots.extend(publication.root(&stored));
        }
    }
    if are_more {
        let why = format!("only {MAX_JUDGED} are checked");
        look.findings.push(gd002::unknown("the other Kustomizations", &publication.artifact, &why));
    }
    look
}

/// Returns a finding if a new revision makes Flux delete too many objects of one Kustomization, or objects of a
/// protected kind. Also returns a finding if Portcullis cannot predict the deletions. An object that moves to another
/// Kustomization counts as deleted, as in the rule GD001.
fn of_revision(view: &View<'_>, root: &Root, judged: &Judged) -> Option<Finding> {
    let (owner, artifact) = (root.of.as_ref()?, root.artifact()?);
    let stored = view.find(&APPLIED, &owner.namespace, &owner.name)?;
    let Some(rendered) = judged.rendered.as_deref() else { return not_rendered(judged, owner, artifact) };
    let plan = Plan {
        kustomization: stored.value(),
        inventory: ObjectId::of_inventory(stored.value()),
        rendered,
        siblings: Vec::new(),
        revision: artifact.short_revision(),
        limits: DeletionLimits::read(view.setting(limits::SECTION)),
    };
    let excess = excess(&plan, owner, artifact)?;
    let given = Metadata::of(stored.value()).annotation(APPROVAL_ANNOTATION);
    let is_approved = given == Some(artifact.revision.as_str());
    Some(if is_approved { gd002::approved(&excess) } else { gd002::found(&excess) })
}

/// Returns a finding which reports that Portcullis cannot predict which objects Flux will delete. The reason is that
/// Portcullis does not know the names of all objects in the new revision. `artifact` is the artifact of this revision.
/// Returns `None` if the revision cannot be built at all, because Flux then deletes nothing.
fn not_rendered(judged: &Judged, owner: &RootOwner, artifact: &Artifact) -> Option<Finding> {
    let is_broken = judged.findings.iter().any(|finding| finding.location.refused);
    let why = "the names of its objects depend on unknown values";
    (!is_broken).then(|| gd002::unknown(&owner.to_string(), artifact, why))
}

/// Returns the objects that Flux would delete because of a new revision, if they exceed the limits. `plan` contains the
/// objects of one Kustomization before and after the revision. The limits are exceeded if the kind of an object is
/// protected, if there are more than `max_count` objects, or if the revision renders no objects.
fn excess<'a>(plan: &'a Plan<'a>, owner: &'a RootOwner, artifact: &'a Artifact) -> Option<Excess<'a>> {
    let deleted = plan.stale();
    let protected: Vec<_> = deleted.iter().copied().filter(|id| plan.limits.protects(id)).collect();
    let limit = Some(plan.limits.max_count).filter(|limit| deleted.len() > *limit);
    let is_empty = plan.rendered.is_empty() && !deleted.is_empty();
    let is_beyond = !protected.is_empty() || limit.is_some() || is_empty;
    let applied = plan.inventory.len();
    is_beyond.then_some(Excess { owner, artifact, deleted, protected, applied, limit, is_empty })
}
