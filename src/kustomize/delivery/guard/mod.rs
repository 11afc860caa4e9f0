//! Checks each deletion by Flux or Argo CD together with all other deletions of the same revision. This check is called
//! the guard.
//!
//! GitOps controllers do not dry-run deletions, so the guard sees a deletion only when it happens. The guard finds the
//! owner of the object, a Kustomization or an Application, from the labels or annotations of the object. It reads the
//! owner from the API server. It denies the deletion of an object of a protected kind. It also denies deletions if a
//! revision deletes more objects than the configuration allows. An annotation of the owner can approve the deletions of
//! a revision.

mod argo;
mod flux;
pub(super) mod sources;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::deployed::APPLIED;
use super::{Consequences, DeletionLimits, Delivery, Judged, Look, Narrowed, Root, Sibling, limits, source};
use crate::admission::{Finding, Level, Metadata, Operation, Request};
use crate::catalog::{Kind, Reference, View};
use crate::kustomize::identity::ObjectId;
use crate::rule::{ANY, FailurePolicy, Match};

/// The id prefix of the rules that limit deletions by Flux and Argo CD. For example, the id `GD001` has the prefix
/// `GD`. These rules are off by default.
pub const FAMILY: &str = "GD";
/// The name of the section `guard` in the configuration file. This section configures how deletions by Flux and Argo CD
/// are checked.
pub const SECTION: &str = "guard";
/// The name of the check `guard-sources`, which is also its key under `deliveries` in the configuration file. The check
/// reports which objects Flux would delete because of a new revision of a source. It is enabled if `guard.hold` is
/// `source`.
pub const SOURCES: &str = "guard-sources";

static MATCHERS: [Match; 1] = [Match {
    operations: &[Operation::Delete],
    failure_policy: FailurePolicy::Fail,
    ..Match::create_or_update(ANY, &["\"*\""], ANY, "")
}];

static NARROWED: Narrowed = Narrowed {
    webhook: "guard.portcullis.dev",
    reason: "A deletion that is not checked cannot be undone; Flux and Argo CD retry it.",
    when: &[
        "oldObject != null && has(oldObject.metadata.labels) && 'kustomize.toolkit.fluxcd.io/name' in \
         oldObject.metadata.labels",
        "oldObject != null && has(oldObject.metadata.annotations) && 'argocd.argoproj.io/tracking-id' in \
         oldObject.metadata.annotations",
    ],
};

static LOOKS_UP: [&Kind; 6] = [
    &APPLIED,
    &argo::APPLICATIONS,
    &source::GIT_REPOSITORIES,
    &source::OCI_REPOSITORIES,
    &source::BUCKETS,
    &source::EXTERNAL_ARTIFACTS,
];

/// The definition of `guard`, the check of deletions by Flux and Argo CD. The check reports deletions of objects of
/// protected kinds, and deletions that exceed the configured limits. The key `guard` under `deliveries` in the
/// configuration file sets the maximum level of its findings.
pub(super) static DELIVERY: Delivery = Delivery {
    name: "guard",
    family: FAMILY,
    summary: "deletions by Flux and Argo CD, with all deletions of the same revision",
    max_level: Level::Deny,
    limited_by: None,
    matchers: &MATCHERS,
    narrowed: Some(&NARROWED),
    looks_up: &LOOKS_UP,
    live_reads: Some(live_reads),
    ahead: None,
    withhold: None,
    consequences: Some(&Consequences {
        siblings: |_, _, _| Vec::new(),
        findings: of_revision,
        replaces_tree_findings: true,
    }),
    look,
};

/// The settings for checking deletions by Flux and Argo CD, from the section `guard` of the configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Guard {
    /// Names of the Kubernetes users of Flux and Argo CD. Portcullis checks the deletions that these users request. It
    /// also checks deletions by the service accounts in `spec.serviceAccountName` of Flux Kustomizations.
    pub controllers: Vec<String>,
    /// How Portcullis stops a new revision that would delete too many objects. With `None`, the default, Flux applies
    /// the revision, and Portcullis denies only the deletions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
}

/// A way to stop a new revision that would delete too many objects, before Flux applies the revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Hold {
    /// Stops the revision at the Flux source. Portcullis keeps the previous artifact in the status of the source, so no
    /// Kustomization that uses the source applies the new revision.
    Source,
}

impl Default for Guard {
    fn default() -> Self {
        let controllers = [
            "system:serviceaccount:flux-system:kustomize-controller",
            "system:serviceaccount:argocd:argocd-application-controller",
        ];
        Self { controllers: controllers.map(str::to_owned).to_vec(), hold: None }
    }
}

impl Guard {
    /// Serializes the section `guard` of the configuration file. The caller stores the result in
    /// [`Policy::settings`](crate::gate::Policy::settings), from which the checks of deletions read it.
    pub fn to_value(&self) -> Value {
        // The fields contain only texts, whose serialization cannot fail.
        serde_json::to_value(self).unwrap_or_default()
    }

    fn of(view: &View<'_>) -> Self {
        view.setting(SECTION).and_then(|section| Self::deserialize(section.value()).ok()).unwrap_or_default()
    }

    fn has(&self, user: &str) -> bool {
        self.controllers.iter().any(|controller| controller == user)
    }
}

/// A request that deletes an object, with the settings that limit deletions by Flux and Argo CD.
struct Deletion<'a> {
    request: &'a Request<'a>,
    view: &'a View<'a>,
    id: ObjectId,
    limits: DeletionLimits,
    guard: Guard,
}

impl<'a> Deletion<'a> {
    /// Returns the deletion that `request` asks for, with the configured limits. `None` if the object is already being
    /// deleted.
    fn of(request: &'a Request<'a>, view: &'a View<'a>) -> Option<Self> {
        let metadata = Metadata::of(request.old_object());
        let id = ObjectId {
            group: request.resource.group.to_string(),
            kind: request.resource.kind.to_string(),
            // If the object is a Namespace, the namespace of the request is its name, so the namespace is read from the
            // metadata.
            namespace: metadata.namespace().to_owned(),
            name: metadata.name().to_owned(),
        };
        let limits = DeletionLimits::read(view.setting(limits::SECTION));
        let deletion = Self { request, view, id, limits, guard: Guard::of(view) };
        (!metadata.is_deleting()).then_some(deletion)
    }
}

fn live_reads(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    let Some(deletion) = Deletion::of(request, view) else { return Vec::new() };
    [flux::live_reads(&deletion), argo::live_reads(&deletion)].concat()
}

fn look(request: &Request<'_>, view: &View<'_>) -> Look {
    let Some(deletion) = Deletion::of(request, view) else { return Look::default() };
    let of_argo = Look { findings: argo::findings(&deletion), roots: Vec::new() };
    flux::look(&deletion).unwrap_or(of_argo)
}

fn of_revision(
    request: &Request<'_>,
    view: &View<'_>,
    (root, judged): (&Root, &Judged),
    _: &[(Sibling, std::sync::Arc<Judged>)],
) -> Vec<Finding> {
    let deletion = Deletion::of(request, view);
    deletion.and_then(|deletion| flux::of_revision(&deletion, root, judged)).into_iter().collect()
}
