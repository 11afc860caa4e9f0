//! Flux sources: judges all Kustomizations of a source when it gets a new artifact.
//!
//! A new revision does not pass admission for the Kustomizations that use it. It arrives as an update of the source's
//! status, before kustomize-controller sees it; this is when the artifact is fetched, and denied if configured.

use super::kustomization::{BY_SOURCE, KUSTOMIZATIONS, Kustomization, SourceRef};
use super::source::{Artifact, GROUP, SOURCES, VERSION};
use super::withhold::withhold;
use super::{Delivery, FAMILY, Look, Root, late};
use crate::admission::{FieldPath, Level, Operation, Request};
use crate::catalog::{Kind, View};
use crate::rule::Match;

const fn status(plural: &'static str, kind: &'static str) -> Match {
    let operations = &[Operation::Update];
    Match { subresource: "status", operations, ..Match::create_or_update(GROUP, &[VERSION], plural, kind) }
}

static MATCHERS: [Match; 4] = [
    status("gitrepositories", "GitRepository"),
    status("ocirepositories", "OCIRepository"),
    status("buckets", "Bucket"),
    status("externalartifacts", "ExternalArtifact"),
];

/// Judges the Kustomizations of a source with the artifact in its new status.
pub(super) static DELIVERY: Delivery = Delivery {
    name: "flux-sources",
    family: FAMILY,
    summary: "the trees of all Kustomizations on a Flux source, when the source gets another revision",
    max_level: Level::Off,
    matchers: &MATCHERS,
    narrowed: None,
    looks_up: &[&KUSTOMIZATIONS],
    live_reads: None,
    ahead: Some(|request| Artifact::of(request.object()).into_iter().collect()),
    withhold: Some(withhold),
    consequences: None,
    look: |request, view| Look { findings: Vec::new(), roots: roots(request, view) },
};

/// Maximum number of Kustomizations of a source that are judged with it. The others are judged when they are admitted.
const MAX_ROOTS: usize = 5_000;

fn roots(request: &Request<'_>, view: &View<'_>) -> Vec<Root> {
    let (new, old) = (Artifact::of(request.object()), Artifact::of(request.old_object()));
    let Some(artifact) = new.filter(|new| old.is_none_or(|old| old.digest != new.digest)) else { return Vec::new() };
    let Some(kind) = SOURCES.into_iter().find(|kind| kind.plural == request.resource.plural) else { return Vec::new() };
    users(kind, request, view).into_iter().map(|user| of(user, &artifact)).collect()
}

/// A Kustomization with its name, and whether a revision may change it.
type User = (String, Kustomization, bool);

/// Returns the Kustomizations that use the source, with their names.
fn users(kind: &Kind, request: &Request<'_>, view: &View<'_>) -> Vec<User> {
    let source = SourceRef {
        kind: kind.kind.to_owned(),
        namespace: request.namespace.to_string(),
        name: request.name.to_string(),
    };
    let stored = view.indexed_everywhere(&KUSTOMIZATIONS, &BY_SOURCE, &source.key(), MAX_ROOTS);
    let read = stored.iter().filter_map(|stored| {
        let name = format!("Kustomization {}/{}", stored.namespace(), stored.name());
        let follows = late::is_applied_by_flux(stored.value());
        Some((name, Kustomization::of(stored.value(), stored.namespace())?, follows))
    });
    read.collect()
}

fn of((name, kustomization, follows_revision): User, artifact: &Artifact) -> Root {
    let field = FieldPath::of(["status", "artifact"]);
    Root { field, of: Some(name), follows_revision, ..kustomization.root(artifact.clone()) }
}
