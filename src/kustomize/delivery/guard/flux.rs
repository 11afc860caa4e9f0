//! Checks deletions of objects by Flux. Reports the deletion of an object of a protected kind, and a revision that
//! deletes too many objects. Labels of a deleted object name the Flux Kustomization that applied it.

use std::sync::Arc;

use serde_json::Value;

use super::super::deployed::APPLIED;
use super::super::kustomization::{Kustomization, SourceRef};
use super::super::rules::gd001::{self, Owner};
use super::super::source::{self, Artifact, Known};
use super::super::{APPROVAL_ANNOTATION, Judged, Look, Plan, Root, limits};
use super::Deletion;
use crate::admission::json::Lookup as _;
use crate::admission::{Finding, Metadata};
use crate::catalog::{LiveRead, Reference, Stored};
use crate::kustomize::identity::ObjectId;

/// The labels with namespace and name of the Kustomization that owns an object.
const OWNER: [&str; 2] = ["kustomize.toolkit.fluxcd.io/namespace", "kustomize.toolkit.fluxcd.io/name"];

/// The Flux Kustomization that deletes an object, with the current artifact of its source. The artifact is `None` if it
/// is unknown.
struct Deleting {
    stored: Arc<Stored>,
    artifact: Option<Artifact>,
}

/// Returns a reference to the Kustomization that owns the object. Flux writes namespace and name of the Kustomization
/// to labels of the object. `None` if the object has no such labels.
fn owner(deletion: &Deletion<'_>) -> Option<Reference> {
    let metadata = Metadata::of(deletion.request.old_object());
    let [namespace, name] = OWNER.map(|label| metadata.label(label).filter(|text| !text.is_empty()));
    Some(Reference::new(&APPLIED, namespace?, name?))
}

/// Returns references to the objects that must be read from the API server, not from the cache, before a deletion is
/// checked. These are the Flux Kustomization that applied the deleted object, and the source of this Kustomization. The
/// list is empty if the object has no labels of Flux. It is also empty if the user who deletes the object is neither a
/// service account nor one of the configured controllers.
pub(super) fn live_reads(deletion: &Deletion<'_>) -> Vec<Reference> {
    let user = &deletion.request.user;
    let Some(owner) = owner(deletion).filter(|_| user.is_service_account() || deletion.guard.has(&user.name)) else {
        return Vec::new();
    };
    let of_source = || {
        let stored = deletion.view.find(&APPLIED, &owner.namespace, &owner.name)?;
        let SourceRef { kind, namespace, name } = SourceRef::of(stored.value(), stored.namespace())?;
        Some(Reference::new(source::kind(&kind)?, &namespace, &name))
    };
    let source = of_source();
    [owner].into_iter().chain(source).collect()
}

/// Checks a deletion by Flux, if possible without a build. The result contains a finding if the decision does not
/// depend on a build, for example because the kind of the object is protected. If a build is needed to count all
/// deletions, the result contains the folder to build. Returns `None` if there is nothing to check, for example because
/// somebody other than Flux deletes the object.
pub(super) fn look(deletion: &Deletion<'_>) -> Option<Look> {
    let reference = owner(deletion)?;
    let Some(deleting) = Deleting::of(deletion, &reference) else {
        return unread(deletion, &reference).map(|finding| Look { findings: vec![finding], roots: Vec::new() });
    };
    let owner = deleting.owner();
    if deleting.is_approved() {
        return Some(Look { findings: vec![gd001::approved(&deletion.id, &owner)], roots: Vec::new() });
    }
    if deletion.limits.protects(&deletion.id) {
        let takes = limits::takes_along(&deletion.id);
        return Some(Look { findings: vec![gd001::protected(&deletion.id, takes, &owner)], roots: Vec::new() });
    }
    let inventory = ObjectId::of_inventory(deleting.stored.value());
    if deleting.is_deleted() {
        let all: Vec<_> = inventory.iter().collect();
        let is_beyond = all.len() > deletion.limits.max_count;
        let findings = is_beyond.then(|| gd001::many(&all, all.len(), deletion.limits.max_count, &owner));
        return Some(Look { findings: findings.into_iter().collect(), roots: Vec::new() });
    }
    Some(Look { findings: Vec::new(), roots: deleting.root().into_iter().collect() })
}

/// Returns a finding if Flux deletes an object of a protected kind, and the Kustomization of the object could not be
/// read. `reference` refers to this Kustomization.
fn unread(deletion: &Deletion<'_>, reference: &Reference) -> Option<Finding> {
    let is_flux = deletion.guard.has(&deletion.request.user.name);
    let Some(LiveRead::Unknown(why)) = deletion.view.live_read(reference) else { return None };
    let place = format!("{}/{}", reference.namespace, reference.name);
    (is_flux && deletion.limits.protects(&deletion.id)).then(|| gd001::unread(&deletion.id, &place, why))
}

/// Checks a deletion by Flux against the current revision of the Kustomization that owns the object. Returns a finding
/// if two conditions are met:
///
/// - The revision no longer renders the object.
/// - The revision renders no objects at all, or it deletes more objects than the limit allows.
///
/// `root` contains the artifact of the revision. `judged` contains the objects that the revision renders.
pub(super) fn of_revision(deletion: &Deletion<'_>, root: &Root, judged: &Judged) -> Option<Finding> {
    let deleting = Deleting::of(deletion, &owner(deletion)?)?;
    let plan = Plan {
        kustomization: deleting.stored.value(),
        inventory: ObjectId::of_inventory(deleting.stored.value()),
        rendered: judged.rendered.as_deref()?,
        siblings: Vec::new(),
        revision: root.artifact()?.short_revision(),
        limits: deletion.limits.clone(),
    };
    let stale = plan.stale();
    let is_stale = stale.contains(&&deletion.id);
    let is_beyond = plan.rendered.is_empty() || stale.len() > plan.limits.max_count;
    let found = || gd001::many(&stale, plan.inventory.len(), plan.limits.max_count, &deleting.owner());
    (is_stale && is_beyond).then(found)
}

impl Deleting {
    /// Returns the Kustomization `owner` if it deletes the object. This is the case if the user of the request is one
    /// of the configured controllers, or the service account in `spec.serviceAccountName` of the Kustomization. Returns
    /// `None` for other users, and if the Kustomization cannot be found.
    fn of(deletion: &Deletion<'_>, owner: &Reference) -> Option<Self> {
        let stored = deletion.view.find(&APPLIED, &owner.namespace, &owner.name)?;
        let user = &*deletion.request.user.name;
        let account = stored.value().at(&["spec", "serviceAccountName"]).and_then(Value::as_str);
        let is_impersonated =
            account.is_some_and(|account| user == format!("system:serviceaccount:{}:{account}", owner.namespace));
        if !is_impersonated && !deletion.guard.has(user) {
            return None;
        }
        let read = Kustomization::of(stored.value(), stored.namespace());
        let artifact = read.and_then(|read| {
            let SourceRef { kind, namespace, name } = read.source;
            match source::find(deletion.view, source::kind(&kind)?, &namespace, &name) {
                Known::Artifact(artifact, _) => Some(artifact),
                Known::Empty | Known::Missing | Known::Unknown => None,
            }
        });
        Some(Self { stored, artifact })
    }

    fn is_deleted(&self) -> bool {
        Metadata::of(self.stored.value()).is_deleting()
    }

    /// Returns the value that the annotation `portcullis.dev/approve-deletions` must have to approve the deletions by
    /// this Kustomization. This is the current revision, or the uid of the Kustomization if the Kustomization is being
    /// deleted. `None` if the revision is unknown.
    fn approval(&self) -> Option<&str> {
        let uid = || Metadata::of(self.stored.value()).uid();
        if self.is_deleted() { uid() } else { self.artifact.as_ref().map(|artifact| artifact.revision.as_str()) }
    }

    fn is_approved(&self) -> bool {
        let given = Metadata::of(self.stored.value()).annotation(APPROVAL_ANNOTATION);
        given.is_some_and(|given| !given.is_empty() && Some(given) == self.approval())
    }

    fn root(&self) -> Option<Root> {
        let read = Kustomization::of(self.stored.value(), self.stored.namespace())?;
        Some(read.root(self.artifact.clone()?))
    }

    fn owner(&self) -> Owner {
        let (namespace, name) = (self.stored.namespace().to_owned(), self.stored.name().to_owned());
        let what = match &self.artifact {
            _ if self.is_deleted() => format!("the deletion of Kustomization {namespace}/{name}"),
            Some(artifact) => format!("revision {} of Kustomization {namespace}/{name}", artifact.short_revision()),
            None => format!("Kustomization {namespace}/{name}"),
        };
        let approval = self.approval().unwrap_or("REVISION").to_owned();
        Owner { what, namespace, resource: "kustomization", name, approval }
    }
}
