//! The other Kustomizations of a source, which apply the same revision.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::kustomization::{BY_SOURCE, KUSTOMIZATIONS, Kustomization, subject};
use super::{Artifact, Root};
use crate::admission::{Metadata, Request};
use crate::catalog::{Catalog, Stored, View};

/// Maximum number of Kustomizations that are compared with another one. More would take longer than a request may.
const MAX_SIBLINGS: usize = 200;

/// Another Kustomization of the same source.
#[derive(Debug, Clone)]
pub struct Sibling {
    /// Namespace and name.
    pub name: String,
    /// What it builds.
    pub root: Root,
    /// The Kustomizations that it waits for.
    pub depends_on: Vec<String>,
}

impl Sibling {
    /// Reads a Kustomization that builds from `artifact`; `None` if it is suspended, or its fields are not known.
    pub fn of(object: &Value, artifact: &Artifact) -> Option<Self> {
        let metadata = Metadata::of(object);
        let name = format!("{}/{}", metadata.namespace(), metadata.name());
        let read = Kustomization::of(object, metadata.namespace())?;
        let root = Root { of: Some(format!("Kustomization {name}")), ..read.root(artifact.clone()) };
        Some(Self { name, root, depends_on: dependencies(object) })
    }
}

/// Returns the siblings of the Kustomization in a request, which builds `root`.
pub(super) fn of_request(request: &Request<'_>, view: &View<'_>, root: &Root) -> Vec<Sibling> {
    let (Some(own), Some(artifact), None) = (subject(request), root.artifact(), root.late) else { return Vec::new() };
    let found = view.indexed_everywhere(&KUSTOMIZATIONS, &BY_SOURCE, &own.source.key(), MAX_SIBLINGS);
    let name = (request.namespace.to_string(), request.display_name());
    among(&found, (&name.0, &name.1), request.object(), artifact)
}

/// Returns the siblings of a stored Kustomization that builds from `artifact`.
pub(super) fn of_stored(catalog: &Catalog, own: &Value, artifact: &Artifact) -> Vec<Sibling> {
    let metadata = Metadata::of(own);
    let Some(read) = Kustomization::of(own, metadata.namespace()) else { return Vec::new() };
    let found = catalog.indexed_everywhere(&KUSTOMIZATIONS, &BY_SOURCE, &read.source.key(), MAX_SIBLINGS);
    among(&found, (metadata.namespace(), metadata.name()), own, artifact)
}

/// Returns the Kustomizations that apply to the same cluster as `own`, without it.
fn among(found: &[Arc<Stored>], name: (&str, &str), own: &Value, artifact: &Artifact) -> Vec<Sibling> {
    let cluster = |object: &Value| object.pointer("/spec/kubeConfig").cloned();
    let others = found.iter().filter(|stored| (stored.namespace(), stored.name()) != name);
    let same = others.filter(|stored| cluster(stored.value()) == cluster(own));
    same.filter_map(|stored| Sibling::of(stored.value(), artifact)).collect()
}

/// Returns the Kustomizations that an object waits for, until they have applied the same revision. An entry with
/// `readyExpr` does not wait for the revision.
pub(super) fn dependencies(object: &Value) -> Vec<String> {
    let own = Metadata::of(object).namespace();
    let entries = object.pointer("/spec/dependsOn").and_then(Value::as_array).into_iter().flatten();
    let read = |entry: &Value| {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let waits = text("readyExpr").is_none();
        Some(format!("{}/{}", text("namespace").unwrap_or(own), text("name")?)).filter(|_| waits)
    };
    entries.filter_map(read).collect()
}

/// Returns whether a Kustomization with these dependencies waits for `target`, directly or through siblings. All of them
/// apply revisions of the same source, so each waits until the next has applied the same one.
pub(super) fn waits_for(depends_on: &[String], target: &str, siblings: &[&Sibling]) -> bool {
    let (mut open, mut seen): (VecDeque<&String>, HashSet<&String>) = (depends_on.iter().collect(), HashSet::new());
    while let Some(name) = open.pop_front() {
        if name == target {
            return true;
        }
        if seen.insert(name) {
            let next = siblings.iter().filter(|sibling| sibling.name == *name);
            open.extend(next.flat_map(|sibling| &sibling.depends_on));
        }
    }
    false
}
