//! Reads Flux Kustomizations and their sources from the cluster, and finds the folders that Flux builds. A controller
//! checks these folders after the objects were admitted.

use std::sync::Arc;

use serde_json::Value;

use super::kustomization::{BY_SOURCE, GROUP, KUSTOMIZATIONS, Kustomization, SourceRef};
pub use super::late::REQUESTED;
use super::rules::gd001::approval_command;
use super::siblings::{self, Sibling};
pub use super::source::GROUP as SOURCE_GROUP;
use super::source::{self, Artifact, SOURCES};
use super::{APPROVAL_ANNOTATION, Root};
use crate::admission::Metadata;
use crate::admission::json::Lookup as _;
use crate::catalog::{Catalog, Kind, Reference, Scope, Storage, Stored};

/// The kind Kustomization of Flux, and the kinds of all Flux sources.
pub static KINDS: [&Kind; 5] = [
    &KUSTOMIZATIONS,
    &source::GIT_REPOSITORIES,
    &source::OCI_REPOSITORIES,
    &source::BUCKETS,
    &source::EXTERNAL_ARTIFACTS,
];
/// The kinds that the controller `held-sources` watches: Kustomization, and the sources that source-controller
/// reconciles when the annotation `reconcile.fluxcd.io/requestedAt` changes. The kind ExternalArtifact is not included,
/// because other controllers write its objects.
pub static ON_REQUEST: [&Kind; 4] =
    [&KUSTOMIZATIONS, &source::GIT_REPOSITORIES, &source::OCI_REPOSITORIES, &source::BUCKETS];
/// The kind Kustomization of Flux, read with `status.inventory`, the list of applied objects. This list is too large
/// for the cache of watched objects. So each Kustomization is read from the API server when its list is needed.
pub static APPLIED: Kind = Kind {
    group: GROUP,
    version: "v1",
    kind: "Kustomization",
    plural: "kustomizations",
    scope: Scope::Namespaced,
    indexes: &[],
    storage: Storage::Live(&[
        &["metadata", "labels"],
        &["metadata", "uid"],
        &["metadata", "deletionTimestamp"],
        &["metadata", "annotations", APPROVAL_ANNOTATION],
        &["spec"],
        &["status", "inventory"],
    ]),
};

/// Maximum number of Kustomizations of one source that a controller checks after a change of the source. This is as
/// many as the largest cluster in the benchmarks has (`docs/performance.md`).
const MAX_USERS: usize = 5_000;

/// Returns whether a kind is a Flux source, such as GitRepository.
pub fn is_source(kind: &Kind) -> bool {
    SOURCES.into_iter().any(|source| std::ptr::eq(source, kind))
}

/// Returns references to the Kustomizations that use a source, at most `MAX_USERS`. `kind` is the kind of the source.
pub fn users(catalog: &Catalog, kind: &Kind, source: &Stored) -> Vec<Reference> {
    let (namespace, name) = (source.namespace().to_owned(), source.name().to_owned());
    let key = SourceRef { kind: kind.kind.to_owned(), namespace, name }.key();
    let stored = catalog.indexed_everywhere(&KUSTOMIZATIONS, &BY_SOURCE, &key, MAX_USERS);
    stored.iter().map(|user| Reference::new(&KUSTOMIZATIONS, user.namespace(), user.name())).collect()
}

/// Returns the folder that a Kustomization builds from the current artifact of its source, with the build options.
/// `None` if the source does not exist or has no artifact. Also `None` if the Kustomization is suspended, or if its
/// source, path or components contain unresolved variables.
pub fn root(catalog: &Catalog, kustomization: &Stored) -> Option<Root> {
    let read = Kustomization::of(kustomization.value(), kustomization.namespace())?;
    let source = catalog.find(source::kind(&read.source.kind)?, &read.source.namespace, &read.source.name)?;
    Some(read.root(Artifact::of(source.value())?))
}

/// Returns the source of a Kustomization, with the kind of the source. `None` if the source does not exist. Also `None`
/// if the Kustomization is suspended, or if its source, path or components contain unresolved variables.
pub fn source_of(catalog: &Catalog, kustomization: &Stored) -> Option<(&'static Kind, Arc<Stored>)> {
    let source = SourceRef::of(kustomization.value(), kustomization.namespace())?;
    let kind = source::kind(&source.kind)?;
    Some((kind, catalog.find(kind, &source.namespace, &source.name)?))
}

/// Returns the other Kustomizations that apply objects to the same cluster as `kustomization`. `artifact` is the
/// artifact from which `kustomization` is built.
pub fn siblings(catalog: &Catalog, kustomization: &Value, artifact: &Artifact) -> Vec<Sibling> {
    siblings::of_stored(catalog, kustomization, artifact)
}

/// Returns the value of the annotation with which a user approves deletions by a Kustomization. The value is a revision
/// or a uid. `None` if there is no approval.
pub fn approval(kustomization: &Value) -> Option<&str> {
    Metadata::of(kustomization).annotation(APPROVAL_ANNOTATION).filter(|approval| !approval.is_empty())
}

/// Returns whether a Kustomization has the annotation that approves its deletions, with the value that `message` asks
/// for. `message` is the text of the condition `Ready` of a Flux source. This text contains a `kubectl` command that
/// sets the annotation.
pub fn is_awaited_approval(message: &str, kustomization: &Value) -> bool {
    let Some(approval) = approval(kustomization) else { return false };
    let metadata = Metadata::of(kustomization);
    let command = approval_command("kustomization", (metadata.namespace(), metadata.name()), approval);
    message.lines().any(|line| line.ends_with(&command))
}

/// Returns the message in the condition `Ready` of a Flux source, if this condition reports that Portcullis denied a
/// new artifact. The source then keeps its previous artifact.
pub fn withheld(source: &Value) -> Option<&str> {
    let conditions = source.at(&["status", "conditions"])?.as_array()?;
    let text = |condition: &'_ Value, field: &str| condition.get(field).and_then(Value::as_str).map(str::to_owned);
    let ready = conditions.iter().find(|condition| text(condition, "type").as_deref() == Some("Ready"))?;
    let is_refused = text(ready, "reason").as_deref() == Some(super::withhold::REASON)
        && text(ready, "status").as_deref() == Some("False");
    if is_refused { ready.get("message")?.as_str() } else { None }
}
