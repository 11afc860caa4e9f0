//! Checks all Kustomizations of a Flux source when the source gets a new artifact.
//!
//! A new revision causes no admission request for the Kustomizations that use it. The revision arrives as an update of
//! the source's status. Before kustomize-controller sees this update, Portcullis fetches and checks the artifact. If
//! the check finds errors, and the level of the check is `deny`, the source keeps its previous artifact.

use super::kustomization::{BY_SOURCE, KUSTOMIZATIONS, Kustomization, SourceRef};
use super::source::{Artifact, GROUP, SOURCES, VERSION};
use super::withhold::withhold;
use super::{Delivery, FAMILY, Look, Root, RootOwner, late};
use crate::admission::{FieldPath, Level, Operation, Request};
use crate::catalog::{Stored, View};
use crate::rule::Match;

const fn status(plural: &'static str, kind: &'static str) -> Match {
    let operations = &[Operation::Update];
    Match { subresource: "status", operations, ..Match::create_or_update(GROUP, &[VERSION], plural, kind) }
}

/// The matchers for status updates of Flux sources. Such an update can contain a new artifact of the source.
pub(super) static MATCHERS: [Match; 4] = [
    status("gitrepositories", "GitRepository"),
    status("ocirepositories", "OCIRepository"),
    status("buckets", "Bucket"),
    status("externalartifacts", "ExternalArtifact"),
];

/// A check that runs when a Flux source gets a new artifact. It builds and checks the folders of all Flux
/// Kustomizations that use this source. Its name `flux-sources` is a key under `deliveries` in the configuration file.
pub(super) static DELIVERY: Delivery = Delivery {
    name: "flux-sources",
    family: FAMILY,
    summary: "the trees of all Kustomizations that use a Flux source, when the source gets a new revision",
    max_level: Level::Off,
    limited_by: None,
    matchers: &MATCHERS,
    narrowed: None,
    looks_up: &[&KUSTOMIZATIONS],
    live_reads: None,
    ahead: Some(|request| Artifact::of(request.object()).into_iter().collect()),
    withhold: Some(withhold),
    consequences: None,
    look: |request, view| Look { findings: Vec::new(), roots: roots(request, view) },
};

/// Maximum number of Kustomizations of a source that are checked together with the source. The request that publishes a
/// new artifact waits for these checks. All other Kustomizations are checked when they are admitted.
const MAX_ROOTS: usize = 5_000;

fn roots(request: &Request<'_>, view: &View<'_>) -> Vec<Root> {
    let Some((source, artifact)) = published(request) else { return Vec::new() };
    let users = view.indexed_everywhere(&KUSTOMIZATIONS, &BY_SOURCE, &source.key(), MAX_ROOTS);
    users.iter().filter_map(|user| root(user, &artifact)).collect()
}

/// Returns the source to which a request adds a new artifact, and this artifact. `None` if the source has no artifact
/// after the request, or if the digest of the artifact is unchanged.
pub(super) fn published(request: &Request<'_>) -> Option<(SourceRef, Artifact)> {
    let (new, old) = (Artifact::of(request.object()), Artifact::of(request.old_object()));
    let artifact = new.filter(|new| old.is_none_or(|old| old.digest != new.digest))?;
    let kind = SOURCES.into_iter().find(|kind| kind.plural == request.resource.plural)?.kind.to_owned();
    let (namespace, name) = (request.namespace.to_string(), request.name.to_string());
    Some((SourceRef { kind, namespace, name }, artifact))
}

/// Returns the folder that the Flux Kustomization `user` builds from a new artifact of its source, with the build
/// options. `None` if the Kustomization is suspended or has no source. Also `None` if its source, path or components
/// contain unresolved variables.
pub(super) fn root(user: &Stored, artifact: &Artifact) -> Option<Root> {
    let kustomization = Kustomization::of(user.value(), user.namespace())?;
    let (field, of) = (FieldPath::of(["status", "artifact"]), Some(RootOwner::of(user.value())));
    let follows_revision = late::is_applied_by_flux(user.value());
    Some(Root { field, of, follows_revision, ..kustomization.root(artifact.clone()) })
}
