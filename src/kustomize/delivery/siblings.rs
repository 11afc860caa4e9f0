//! Finds the siblings of a Flux Kustomization. Siblings are the other Kustomizations that apply their objects to the
//! same cluster. They can have the same source as the Kustomization, or a different one.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::kustomization::{BY_CLUSTER, BY_SOURCE, KUSTOMIZATIONS, Kustomization, SourceRef, cluster, source_of};
use super::source::{self, Known};
use super::{Artifact, Root, RootOwner};
use crate::admission::json::Lookup as _;
use crate::admission::{Metadata, Request};
use crate::catalog::{Catalog, LiveReads, Stored, View};

/// Maximum number of other Kustomizations that are compared with a Kustomization. More comparisons would exceed the
/// time limit of a request.
const MAX_SIBLINGS: usize = 200;
/// Maximum number of other Flux sources that are read when Portcullis compares a Kustomization with the other
/// Kustomizations of its cluster. The comparison finds objects that two Kustomizations apply. The artifacts of these
/// sources may have to be fetched, and too many fetches would delay other requests.
const MAX_SOURCES: usize = 50;

/// A Flux Kustomization that applies its objects to the same cluster as the Kustomization that is being checked.
#[derive(Debug, Clone)]
pub struct Sibling {
    /// Namespace and name, such as `flux-system/apps`.
    pub name: String,
    /// The folder that the Kustomization builds, with the artifact that contains this folder and the options of the
    /// build.
    pub root: Root,
    /// The Kustomizations for which this Kustomization waits, from `spec.dependsOn`, such as `flux-system/infra`.
    pub depends_on: Vec<String>,
    /// The source from which this Kustomization is built, with its revision, such as `revision main@sha1:1 of
    /// GitRepository flux-system/web`. `None` if the Kustomization that is being checked has the same source.
    pub elsewhere: Option<String>,
}

impl Sibling {
    /// Reads a Kustomization that builds from `artifact`, and that has the same source as the Kustomization that is
    /// being checked. `None` if the Kustomization is suspended or has no source. Also `None` if its source, path or
    /// components contain unresolved variables.
    pub fn of(object: &Value, artifact: &Artifact) -> Option<Self> {
        let metadata = Metadata::of(object);
        let name = format!("{}/{}", metadata.namespace(), metadata.name());
        let read = Kustomization::of(object, metadata.namespace())?;
        let root = Root { of: Some(RootOwner::of(object)), ..read.root(artifact.clone()) };
        Some(Self { name, root, depends_on: dependencies(object), elsewhere: None })
    }

    /// Reads `object`, a Kustomization. Its source differs from the source of the Kustomization that is being checked.
    /// `artifact` is the current artifact of the source of `object`.
    ///
    /// `None` if the Kustomization `object` is suspended or has no source. Also `None` if its source, path or
    /// components contain unresolved variables.
    pub fn elsewhere(object: &Value, artifact: &Artifact) -> Option<Self> {
        let SourceRef { kind, namespace, name } = SourceRef::of(object, Metadata::of(object).namespace())?;
        let elsewhere = format!("revision {} of {kind} {namespace}/{name}", artifact.short_revision());
        Some(Self { elsewhere: Some(elsewhere), ..Self::of(object, artifact)? })
    }
}

/// Returns the siblings of the Kustomization in the request: the other Kustomizations that apply their objects to the
/// same cluster. `root` is the folder that the Kustomization in the request builds. Returns an empty list if Flux may
/// build another artifact than the one that contains `root` (see `root.late`).
pub(super) fn of_request(request: &Request<'_>, view: &View<'_>, root: &Root) -> Vec<Sibling> {
    let (Some(source), Some(artifact), None) = (source_of(request), root.artifact(), root.late) else {
        return Vec::new();
    };
    let (namespace, name) = (&*request.namespace, &*request.display_name());
    Own { namespace, name, object: request.object(), source: &source, artifact }.siblings(view)
}

/// Returns the siblings of the stored Kustomization `object`: the other Kustomizations that apply their objects to the
/// same cluster. `object` builds from `artifact`.
pub(super) fn of_stored(catalog: &Catalog, object: &Value, artifact: &Artifact) -> Vec<Sibling> {
    let metadata = Metadata::of(object);
    let (namespace, name) = (metadata.namespace(), metadata.name());
    let Some(source) = SourceRef::of(object, namespace) else { return Vec::new() };
    let own = Own { namespace, name, object, source: &source, artifact };
    own.siblings(&View::new(catalog, &LiveReads::new()))
}

/// A Kustomization and the data for finding its siblings. Siblings are the other Kustomizations that apply their
/// objects to the same cluster.
struct Own<'a> {
    namespace: &'a str,
    name: &'a str,
    object: &'a Value,
    source: &'a SourceRef,
    artifact: &'a Artifact,
}

impl Own<'_> {
    /// Returns the other Kustomizations that apply their objects to the same cluster as this Kustomization, at most
    /// [`MAX_SIBLINGS`]. Kustomizations with the same source come first.
    fn siblings(&self, view: &View<'_>) -> Vec<Sibling> {
        let same = view.indexed_everywhere(&KUSTOMIZATIONS, &BY_SOURCE, &self.source.key(), MAX_SIBLINGS);
        let key = cluster(self.object, self.namespace);
        let all = view.indexed_everywhere(&KUSTOMIZATIONS, &BY_CLUSTER, &key, MAX_SIBLINGS + same.len());
        let of_cluster = same.iter().filter(|stored| cluster(stored.value(), stored.namespace()) == key);
        let others = of_cluster.filter(|stored| !self.is(stored));
        let of_source = others.filter_map(|stored| Sibling::of(stored.value(), self.artifact));
        of_source.chain(self.of_other_sources(&all, view)).take(MAX_SIBLINGS).collect()
    }

    /// Returns the Flux Kustomizations in `all` whose source differs from the source of the Kustomization `self`. `all`
    /// contains the Kustomizations that apply their objects to the same cluster as `self`. Each result contains the
    /// current artifact of its own source. Omits Kustomizations whose source has no known artifact. Also omits those
    /// whose source is not among the first [`MAX_SOURCES`] sources.
    fn of_other_sources(&self, all: &[Arc<Stored>], view: &View<'_>) -> Vec<Sibling> {
        let mut sources: Vec<(SourceRef, Option<Artifact>)> = Vec::new();
        let sibling = |stored: &Arc<Stored>| {
            let source = SourceRef::of(stored.value(), stored.namespace())?;
            if source == *self.source || self.is(stored) {
                return None;
            }
            if !sources.iter().any(|(known, _)| *known == source) && sources.len() < MAX_SOURCES {
                sources.push((source.clone(), artifact(&source, view)));
            }
            let (_, artifact) = sources.iter().find(|(known, _)| *known == source)?;
            Sibling::elsewhere(stored.value(), artifact.as_ref()?)
        };
        all.iter().filter_map(sibling).collect()
    }

    fn is(&self, stored: &Stored) -> bool {
        (stored.namespace(), stored.name()) == (self.namespace, self.name)
    }
}

/// Returns the current artifact of a source. `None` if the source does not exist, has no artifact, or is unknown.
fn artifact(source: &SourceRef, view: &View<'_>) -> Option<Artifact> {
    match source::find(view, source::kind(&source.kind)?, &source.namespace, &source.name) {
        Known::Artifact(artifact, _) => Some(artifact),
        Known::Empty | Known::Missing | Known::Unknown => None,
    }
}

/// Returns the entries of `spec.dependsOn` of the Kustomization `object`, each as `NAMESPACE/NAME`. A dependency with
/// the same source as `object` applies each new revision before `object` does. Omits entries with `readyExpr`, because
/// Flux does not compare revisions for them.
pub(super) fn dependencies(object: &Value) -> Vec<String> {
    let own = Metadata::of(object).namespace();
    let entries = object.at(&["spec", "dependsOn"]).and_then(Value::as_array).into_iter().flatten();
    let read = |entry: &Value| {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let waits = text("readyExpr").is_none();
        Some(format!("{}/{}", text("namespace").unwrap_or(own), text("name")?)).filter(|_| waits)
    };
    entries.filter_map(read).collect()
}

/// Returns whether a Flux Kustomization with the dependencies `depends_on` waits until the Kustomization `target` has
/// applied the same revision. It waits if `target` is one of its dependencies, or if one of its dependencies waits for
/// `target`.
///
/// `siblings` contains the other Kustomizations of the cluster, with their own dependencies. The dependencies of
/// Kustomizations with another source are ignored: Flux waits until such a Kustomization is ready, but not until it has
/// applied a revision.
pub(super) fn waits_for(depends_on: &[String], target: &str, siblings: &[&Sibling]) -> bool {
    let (mut open, mut seen): (VecDeque<&String>, HashSet<&String>) = (depends_on.iter().collect(), HashSet::new());
    while let Some(name) = open.pop_front() {
        if name == target {
            return true;
        }
        if seen.insert(name) {
            let next = siblings.iter().filter(|sibling| sibling.name == *name && sibling.elsewhere.is_none());
            open.extend(next.flat_map(|sibling| &sibling.depends_on));
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kustomize::delivery::deployed;

    fn kustomization(name: &str, source: &str) -> Value {
        json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
               "metadata": {"name": name, "namespace": "a"},
               "spec": {"path": name, "sourceRef": {"kind": "GitRepository", "name": source}}})
    }

    fn source(name: &str) -> Value {
        json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
               "metadata": {"name": name, "namespace": "a"},
               "status": {"artifact": {"url": format!("http://x/{name}"), "digest": name, "revision": "main@sha1:1"}}})
    }

    /// Calls [`of_stored`] for the Kustomization `z0` in a test catalog. Returns two numbers: how many of the returned
    /// Kustomizations have the same source as `z0`, and how many have another source.
    ///
    /// The parameters determine the content of the catalog:
    ///
    /// - `of_source` is the number of Kustomizations with the same source as `z0`, including `z0` itself.
    /// - `of_others` is the number of Kustomizations with other sources.
    /// - `sources` is the number of these other sources.
    fn numbers(of_source: usize, of_others: usize, sources: usize) -> [usize; 2] {
        let same = (0..of_source).map(|at| kustomization(&format!("z{at}"), "own"));
        let others = (0..of_others).map(|at| kustomization(&format!("a{at}"), &format!("s{}", at % sources)));
        let sources = (0..sources).map(|at| source(&format!("s{at}")));
        let catalog = Catalog::of(deployed::KINDS, same.chain(others).chain(sources).collect());
        let artifact = Artifact { url: "http://x".into(), digest: "own".into(), revision: "main@sha1:1".into() };
        let siblings = of_stored(&catalog, &kustomization("z0", "own"), &artifact);
        let of_source = siblings.iter().take_while(|sibling| sibling.elsewhere.is_none()).count();
        assert!(
            siblings.iter().skip(of_source).all(|sibling| sibling.elsewhere.is_some()),
            "those of the source are first"
        );
        [of_source, siblings.len() - of_source]
    }

    #[test]
    fn compares_a_bounded_number_with_those_of_the_source_first() {
        assert_eq!(numbers(3, 4, 2), [2, 4]);
        assert_eq!(numbers(150, 100, 2), [149, 51]);
        assert_eq!(numbers(300, 100, 2)[1], 1, "the first 200 of the source, one of which is the Kustomization itself");
        assert_eq!(numbers(1, 120, 60), [0, 100], "50 sources");
    }

    #[test]
    fn leaves_out_sources_without_an_artifact() {
        let catalog = Catalog::of(deployed::KINDS, vec![kustomization("one", "none"), kustomization("own", "own")]);
        let artifact = Artifact { url: "http://x".into(), digest: "own".into(), revision: "main@sha1:1".into() };
        assert!(of_stored(&catalog, &kustomization("own", "own"), &artifact).is_empty());
    }
}
