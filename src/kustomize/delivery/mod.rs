//! How trees reach a cluster: objects that point at a tree, carry one, or are parts of one. One file a system.
//!
//! A [`Delivery`] is a row of the registry. What it looks for is a pure function of the request and the catalog: what is
//! wrong with the object as it stands, and the [`Root`]s that would be built because of it. Trees are fetched and judged
//! beside the handler, by a [`Judge`]; what is found in them becomes findings of the same rules that `portcullis check`
//! has for files.

mod argo;
mod carried;
mod carriers;
mod config_map;
mod definitions;
pub mod deployed;
mod fleet;
mod flux;
mod flux_sources;
mod judge;
mod kz041;
mod kz042;
mod late;
pub mod source;
mod stored;
mod sveltos;
mod told;
pub mod withhold;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

pub use flux::flux_spec;
pub use judge::{Inline, Judge, Judged, Judging, Outcome, judge};
pub use source::Artifact;
pub use told::{not_judged, told};

use super::options::Options;
use super::tree::Tree;
use crate::admission::patch::Draft;
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::{Kind, Reference, View};
use crate::rule::{Definition, Match, Rule};

/// The annotation that says where an object stands in a tree: the folder of a stored Kustomization, or the folder to
/// build in the tree of a ConfigMap.
pub const PATH_ANNOTATION: &str = "portcullis.dev/path";

/// The family of all rules about trees, and of every delivery: on and off with it.
pub const FAMILY: &str = "KZ";

/// A way in which trees reach a cluster: a row of the registry.
pub struct Delivery {
    /// Stable name, such as `flux-trees`.
    pub name: &'static str,
    /// One line: what is judged.
    pub summary: &'static str,
    /// The gravest level that its findings have where the configuration says nothing.
    pub most: Level,
    /// The requests it looks at.
    pub scope: &'static [Match],
    /// Which of these requests are sent at all, where it is not all of them.
    pub narrowed: Option<&'static Narrowed>,
    /// The kinds it looks up.
    pub looks_up: &'static [&'static Kind],
    /// The objects it wants confirmed, as for a rule.
    pub confirm: Option<fn(&Request<'_>, &View<'_>) -> Vec<Reference>>,
    /// The artifacts that later requests will need: fetched ahead, whatever the level.
    pub ahead: Option<fn(&Request<'_>) -> Vec<Artifact>>,
    /// Changes the object so that it says what is refused, in the mutating webhook, where the level is `deny`.
    pub withhold: Option<fn(&Request<'_>, &[Finding], &mut Draft<'_>)>,
    /// What is wrong with the object, and what is built because of it.
    pub look: fn(&Request<'_>, &View<'_>) -> Look,
}

/// Requests that are sent only if a condition holds: they have a webhook of their own.
#[derive(Debug, PartialEq, Eq)]
pub struct Narrowed {
    /// The webhook's name.
    pub webhook: &'static str,
    /// Why they are narrowed, for people who read the registration.
    pub reason: &'static str,
    /// The condition, in CEL over `request`, `object` and `oldObject`; one line each, joined by `||`.
    pub when: &'static [&'static str],
}

/// What a delivery sees in a request.
#[derive(Debug, Default)]
pub struct Look {
    /// What is wrong with the object as it stands.
    pub findings: Vec<Finding>,
    /// What is built because of it.
    pub roots: Vec<Root>,
}

/// A root that would be built because of an object.
#[derive(Debug, Clone)]
pub struct Root {
    /// Where in the object the tree is named.
    pub field: FieldPath,
    /// Whose root it is, where it is not the object's own.
    pub of: Option<String>,
    /// The tree.
    pub content: Content,
    /// Which of its folders.
    pub at: At,
    /// How it is built.
    pub options: Options,
    /// Why a finding may be true only until the next revision: it then warns and never denies.
    pub late: Option<&'static str>,
    /// Whether the same revision may change the object that names the root.
    pub follows_revision: bool,
}

impl Root {
    /// Returns the artifact that holds the tree, where it must be fetched.
    pub fn artifact(&self) -> Option<&Artifact> {
        match &self.content {
            Content::Artifact(artifact) => Some(artifact),
            Content::Carried(_) => None,
        }
    }
}

/// Which folders of a tree are built.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum At {
    /// This one.
    Folder(String),
    /// This one, if it has a `kustomization.yaml`; otherwise it is no matter of kustomize's.
    FolderIfAny(String),
    /// Nobody says: every one with a kustomization file that no other refers to.
    EveryRoot,
}

/// Where a tree comes from.
#[derive(Clone)]
pub enum Content {
    /// It must be fetched.
    Artifact(Artifact),
    /// It is in the object; unpacking it is work.
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

/// Returns all deliveries, in the order in which they look.
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
    ]
}

/// Returns the rules that belong to deliveries.
pub(super) fn rules() -> Vec<&'static Rule> {
    vec![&kz041::RULE, &kz042::RULE]
}

/// Returns the kinds of stored Kustomizations and Components, which a cluster has only where it wants them.
pub fn definitions() -> Vec<&'static Definition> {
    definitions::DEFINITIONS.to_vec()
}

/// Returns whether an update changes nothing that is built: finalizers, labels, what controllers write.
///
/// What is stored already is not refused anew for that.
pub fn is_unchanged(request: &Request<'_>) -> bool {
    const UNIMPORTANT: [&str; 2] = ["metadata", "status"];
    if request.operation != Operation::Update || !request.resource.subresource.is_empty() {
        return false;
    }
    let (new, old) = (request.object().as_object(), request.old_object().as_object());
    let Some((new, old)) = new.zip(old) else { return false };
    if request.resource.group == flux::GROUP {
        return flux::builds_the_same(request.object(), request.old_object());
    }
    let keys: HashSet<&String> = new.keys().chain(old.keys()).collect();
    let same = |key: &&String| UNIMPORTANT.contains(&key.as_str()) || new.get(*key) == old.get(*key);
    let (new, old) = (request.object(), request.old_object());
    keys.iter().all(same)
        && path_annotation(new) == path_annotation(old)
        && carriers::label(new) == carriers::label(old)
}

/// What [`PATH_ANNOTATION`] says.
fn path_annotation(object: &serde_json::Value) -> Option<&str> {
    object.get("metadata")?.get("annotations")?.get(PATH_ANNOTATION)?.as_str()
}
