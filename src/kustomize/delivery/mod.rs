//! Sources of trees: objects that refer to a tree, contain one, or are parts of one. There is one file per system.
//!
//! A [`Delivery`] is a definition in the registry. It is a pure function of the request and the catalog, which returns
//! errors in the object and the [`Root`]s that will be built because of it. A [`Judge`] fetches and judges trees
//! outside the request handler; findings in trees belong to the same rules that `portcullis check` applies to files.

mod argo;
mod carried;
mod carriers;
mod config_map;
mod definitions;
mod deletions;
pub mod deployed;
mod fate;
mod fleet;
mod flux;
mod flux_sources;
pub mod guard;
mod judge;
mod kustomization;
mod late;
pub mod limits;
mod rules;
mod siblings;
pub mod source;
mod stored;
mod sveltos;
mod tree_findings;
pub mod withhold;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

pub use deletions::{Deletion, Plan, with_objects};
pub use fate::{Fate, owner};
pub use judge::{Inline, Judge, Judged, Judging, Outcome, judge};
pub use kustomization::flux_spec;
pub(super) use kustomization::{Kustomization, SourceRef};
pub use limits::DeletionLimits;
pub(super) use rules::{GD001, GD002, RULES};
pub use siblings::Sibling;
pub use source::Artifact;
pub use tree_findings::{is_planned, not_judged, tree_findings};

use super::options::Options;
use super::tree::Tree;
use crate::admission::patch::Draft;
use crate::admission::{FieldPath, Finding, Level, Metadata, Operation, Request};
use crate::catalog::{Kind, Reference, View};
use crate::kustomize::annotations::PATH_ANNOTATION;
use crate::rule::{Definition, Match, RuleInfo};

/// The family of all rules about trees, and of all deliveries but the guard, which are on or off together.
pub const FAMILY: &str = "KZ";

/// The annotation of a Flux Kustomization or an Argo CD Application that approves deletions; see GD001.
pub const APPROVAL_ANNOTATION: &str = "portcullis.dev/approve-deletions";

/// The definition of a delivery: a source of kustomize trees.
pub struct Delivery {
    /// Stable name, such as `flux-trees`.
    pub name: &'static str,
    /// The family of rules with which it is on or off, such as `KZ`.
    pub family: &'static str,
    /// A summary in one line.
    pub summary: &'static str,
    /// The default maximum level of its findings.
    pub max_level: Level,
    /// The rule whose level limits its findings too, if any.
    pub limited_by: Option<&'static RuleInfo>,
    /// The requests that it matches.
    pub matchers: &'static [Match],
    /// Match conditions that restrict these requests, if any.
    pub narrowed: Option<&'static Narrowed>,
    /// The kinds that it looks up.
    pub looks_up: &'static [&'static Kind],
    /// The objects to read live, as for a rule.
    pub live_reads: Option<fn(&Request<'_>, &View<'_>) -> Vec<Reference>>,
    /// Returns the artifacts that later requests will need. They are fetched ahead at any level.
    pub ahead: Option<fn(&Request<'_>) -> Vec<Artifact>>,
    /// Changes the object to report a denial, in the mutating webhook at level `deny`.
    pub withhold: Option<fn(&Request<'_>, &[Finding], &mut Draft<'_>)>,
    /// What the cluster does once a root of the object is built.
    pub consequences: Option<&'static Consequences>,
    /// Returns errors in the object, and the roots that are built because of it.
    pub look: fn(&Request<'_>, &View<'_>) -> Look,
}

/// What the cluster does once a root of an object is built.
pub struct Consequences {
    /// Returns the other objects whose roots are judged for the comparison.
    pub siblings: fn(&Request<'_>, &View<'_>, &Root) -> Vec<Sibling>,
    /// Returns the findings, given the judged siblings.
    pub findings: ConsequencesOf,
    /// Whether errors in the tree are not reported.
    pub replaces_tree_findings: bool,
}

/// A function that returns findings about a judged root, given the judged siblings.
pub type ConsequencesOf = fn(&Request<'_>, &View<'_>, (&Root, &Judged), &[(Sibling, Arc<Judged>)]) -> Vec<Finding>;

/// Match conditions for requests, which get a webhook of their own.
#[derive(Debug, PartialEq, Eq)]
pub struct Narrowed {
    /// The webhook's name.
    pub webhook: &'static str,
    /// The reason for the conditions, for readers of the registration.
    pub reason: &'static str,
    /// The conditions in CEL over `request`, `object` and `oldObject`, which are joined by `||`.
    pub when: &'static [&'static str],
}

/// The result of a delivery for a request.
#[derive(Debug, Default)]
pub struct Look {
    /// Errors in the object itself.
    pub findings: Vec<Finding>,
    /// The roots that are built because of the object.
    pub roots: Vec<Root>,
}

/// A root that is built because of an object.
#[derive(Debug, Clone)]
pub struct Root {
    /// The field of the object that names the tree.
    pub field: FieldPath,
    /// The Flux Kustomization that owns the root, unless it is the object itself.
    pub of: Option<RootOwner>,
    /// The tree.
    pub content: Content,
    /// The folders of the tree that are built.
    pub at: At,
    /// The options of the build.
    pub options: Options,
    /// The reason why a finding may be fixed by the next revision, if any. The finding then warns and never denies.
    pub late: Option<&'static str>,
    /// Whether the same revision may change the object that names the root.
    pub follows_revision: bool,
}

/// Namespace and name of the Flux Kustomization that owns a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootOwner {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl RootOwner {
    /// Returns the owner that an object is.
    pub(super) fn of(object: &serde_json::Value) -> Self {
        let metadata = Metadata::of(object);
        Self { namespace: metadata.namespace().to_owned(), name: metadata.name().to_owned() }
    }
}

impl fmt::Display for RootOwner {
    /// Formats the owner, such as `Kustomization flux-system/apps`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kustomization {}/{}", self.namespace, self.name)
    }
}

impl Root {
    /// Returns the artifact that contains the tree, if it must be fetched.
    pub fn artifact(&self) -> Option<&Artifact> {
        match &self.content {
            Content::Artifact(artifact) => Some(artifact),
            Content::Carried(_) => None,
        }
    }
}

/// The folders of a tree that are built.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum At {
    /// This folder.
    Folder(String),
    /// This folder, if it has a `kustomization.yaml`; otherwise kustomize is not used.
    FolderIfAny(String),
    /// Every folder with a kustomization file to which no other folder refers.
    EveryRoot,
}

/// The content of a tree.
#[derive(Clone)]
pub enum Content {
    /// An artifact, which must be fetched.
    Artifact(Artifact),
    /// An archive in the object, which must be unpacked.
    Carried(Arc<dyn Fn() -> Result<Tree, String> + Send + Sync>),
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Artifact(artifact) => artifact.fmt(f),
            Self::Carried(_) => f.write_str("Carried"),
        }
    }
}

/// Returns all deliveries, in the order in which they run.
pub fn deliveries() -> Vec<&'static Delivery> {
    vec![
        &flux::OBJECTS,
        &flux::TREES,
        &flux_sources::DELIVERY,
        &argo::DELIVERY,
        &fleet::DELIVERY,
        &sveltos::DELIVERY,
        &config_map::DELIVERY,
        &stored::DELIVERY,
        &guard::DELIVERY,
        &guard::sources::DELIVERY,
    ]
}

/// Returns the optional kinds of stored Kustomizations and Components.
pub fn definitions() -> Vec<&'static Definition> {
    definitions::DEFINITIONS.to_vec()
}

/// Returns whether an update does not change the build: it changes only finalizers, labels, or fields that controllers
/// write.
///
/// Such updates of existing objects are not denied.
pub fn is_unchanged(request: &Request<'_>) -> bool {
    const UNIMPORTANT: [&str; 2] = ["metadata", "status"];
    if request.operation != Operation::Update || !request.resource.subresource.is_empty() {
        return false;
    }
    let (new, old) = (request.object().as_object(), request.old_object().as_object());
    let Some((new, old)) = new.zip(old) else { return false };
    if request.resource.group == kustomization::GROUP {
        return kustomization::builds_the_same(request.object(), request.old_object());
    }
    let keys: HashSet<&String> = new.keys().chain(old.keys()).collect();
    let same = |key: &&String| UNIMPORTANT.contains(&key.as_str()) || new.get(*key) == old.get(*key);
    let (new, old) = (request.object(), request.old_object());
    keys.iter().all(same)
        && path_annotation(new) == path_annotation(old)
        && carriers::label(new) == carriers::label(old)
}

/// Returns the value of the annotation [`PATH_ANNOTATION`].
fn path_annotation(object: &serde_json::Value) -> Option<&str> {
    Metadata::of(object).annotation(PATH_ANNOTATION)
}
