//! Checks kustomization files in admission requests. The object in a request contains such files, as a ConfigMap can,
//! or refers to them, as a Flux Kustomization does. Tools such as Flux and Argo CD have a submodule each, which finds
//! the files.
//!
//! Each check has two steps:
//!
//! 1. The check examines the object in the request, and fetches no files. The results are the errors in this object,
//!    and the folders to build.
//! 2. The check fetches the files, builds the folders, and applies the same rules to them that `portcullis check`
//!    applies to local files.
//!
//! The type [`Delivery`] defines a check. Its name comes from the key `deliveries` of the configuration file, which
//! contains the settings of the checks. Its function `look` is the first step, and returns each folder as a [`Root`].
//! The trait [`Judge`] is the interface of the second step.

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
pub(super) use rules::{RULES, TREE_RULES};
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

/// The id prefix of the rules about kustomize. For example, the id `KZ001` has the prefix `KZ`. Users enable or disable
/// these rules together. This also enables or disables all checks under `deliveries` in the configuration file, except
/// for `guard` and `guard-sources`.
pub const FAMILY: &str = "KZ";

/// The annotation with which a user approves deletions by a Flux Kustomization or an Argo CD Application. For a
/// Kustomization, the value is the approved revision, or the uid of the Kustomization if the Kustomization is being
/// deleted. For an Application, the value is the time of the approval.
pub const APPROVAL_ANNOTATION: &str = "portcullis.dev/approve-deletions";

/// A check of kustomization files that runs for admission requests. The object in the request contains the files, as a
/// ConfigMap can, or refers to them, as a Flux Kustomization does. The key `deliveries` of the configuration file sets
/// the maximum level of the findings, such as `warn`.
pub struct Delivery {
    /// The stable name of this check, such as `flux-trees`. It is also the key under `deliveries` with which users
    /// configure the check.
    pub name: &'static str,
    /// The id prefix of the rules to which this check belongs, such as `KZ`. The check is enabled or disabled together
    /// with these rules.
    pub family: &'static str,
    /// A description of the checked files or objects in one line, such as `the trees in Rancher Fleet's Bundles`.
    pub summary: &'static str,
    /// The default maximum level of the findings. Higher levels of rules are reduced to this level.
    pub max_level: Level,
    /// A rule whose configured level also limits the findings of this check. For example, if the level of the rule is
    /// `warn`, the findings of this check only warn. `None` if there is no such rule.
    pub limited_by: Option<&'static RuleInfo>,
    /// The admission requests for which this check runs, such as updates of Flux Kustomizations.
    pub matchers: &'static [Match],
    /// Additional conditions for the requests, besides `matchers`; `None` if there are none. The API server evaluates
    /// them as match conditions of a separate webhook.
    pub narrowed: Option<&'static Narrowed>,
    /// The kinds of objects in the cluster that this check reads, in addition to the object in the request.
    pub looks_up: &'static [&'static Kind],
    /// A function that returns references to the objects that this check needs from the API server instead of from the
    /// cache. Portcullis reads these objects before it calls `look`. `None` if the check needs only the cache.
    pub live_reads: Option<fn(&Request<'_>, &View<'_>) -> Vec<Reference>>,
    /// A function that returns the artifacts to fetch in advance, such as the new artifact of a Flux source. Later
    /// requests then find the artifact in the cache. Portcullis calls the function even if the level of the check is
    /// `off`. `None` if the check has no such function.
    pub ahead: Option<fn(&Request<'_>) -> Vec<Artifact>>,
    /// A function that changes the object in the request instead of denying the request. For example, it restores the
    /// previous artifact of a Flux source, and reports the error in the condition `Ready`. `None` if the check has no
    /// such function.
    ///
    /// The mutating webhook calls the function for every request if the level of this check is `deny`. The second
    /// parameter contains the denials of all checks that have this function. If there are none, the function only
    /// updates `Ready`.
    pub withhold: Option<fn(&Request<'_>, &[Finding], &mut Draft<'_>)>,
    /// An additional check, which runs after a folder is built. It reports effects on objects in the cluster, such as
    /// deletions. `None` if there is no additional check.
    pub consequences: Option<&'static Consequences>,
    /// A function that performs the first step of this check, and fetches no files. It examines the object in the
    /// request, such as a Flux Kustomization. It returns the errors in this object, and the folders with kustomization
    /// files to build in the second step.
    pub look: fn(&Request<'_>, &View<'_>) -> Look,
}

/// A check that runs after a folder with kustomization files is built. It reports what the result of the build changes
/// in the cluster, such as the objects that Flux will delete.
pub struct Consequences {
    /// A function that returns the other Flux Kustomizations that apply objects to the same cluster as the
    /// Kustomization of the built folder. The `Root` is the built folder. Portcullis also builds the folders of the
    /// returned Kustomizations, to compare their objects with those of the built folder.
    pub siblings: fn(&Request<'_>, &View<'_>, &Root) -> Vec<Sibling>,
    /// A function that returns findings about the effects of a build on the cluster, such as deletions. It receives the
    /// built folder with its result, and the other Kustomizations of the same cluster with their results.
    pub findings: ConsequencesOf,
    /// Whether the check reports only the effects on the cluster. If so, the findings about the kustomization files are
    /// left out.
    pub replaces_tree_findings: bool,
}

/// A function that returns findings about the effects of a kustomize build on the cluster, such as deletions. The third
/// parameter is the built folder with the result of its build. The last parameter lists other Flux Kustomizations of
/// the same cluster, each with the result of building its folder.
pub type ConsequencesOf = fn(&Request<'_>, &View<'_>, (&Root, &Judged), &[(Sibling, Arc<Judged>)]) -> Vec<Finding>;

/// A webhook with match conditions, for checks that need only some of the requests for a resource. The API server sends
/// only requests that meet the conditions. These checks have their own webhook, because match conditions apply to a
/// whole webhook.
#[derive(Debug, PartialEq, Eq)]
pub struct Narrowed {
    /// The name of the webhook, such as `trees.portcullis.dev`.
    pub webhook: &'static str,
    /// The YAML comment on this webhook in the generated webhook configuration. It explains why the webhook receives
    /// only some requests, or why its failure policy is `Fail` or `Ignore`.
    pub reason: &'static str,
    /// CEL expressions that select the requests for the webhook. A request is selected if at least one of them is true.
    /// The expressions can use the variables `request`, `object` and `oldObject`.
    pub when: &'static [&'static str],
}

/// The result of the first step of a check, which fetches no files. It contains the errors in the object of the
/// request, and the folders to build and check.
#[derive(Debug, Default)]
pub struct Look {
    /// The findings about the object in the request, such as a Flux Kustomization. Findings in kustomization files are
    /// not included.
    pub findings: Vec<Finding>,
    /// The folders to build and check. The object in the request refers to these folders or contains their files.
    pub roots: Vec<Root>,
}

/// A kustomization root: the folder that a tool such as Flux builds, with the source of its files and the options of
/// the build. A Kubernetes object, such as a Flux Kustomization, refers to this folder or contains its files.
#[derive(Debug, Clone)]
pub struct Root {
    /// The field of the Kubernetes object that refers to the folder or contains its files, such as `spec.path`.
    pub field: FieldPath,
    /// The Flux Kustomization that builds the folder. `None` if the checked object is this Kustomization itself, or if
    /// Flux does not build the folder.
    pub of: Option<RootOwner>,
    /// The files for the build, such as `kustomization.yaml`. They come from an archive that must be fetched, or from a
    /// Kubernetes object.
    pub content: Content,
    /// The folders of `content` that are built. Usually, this is one folder.
    pub at: At,
    /// The options of the kustomize build, such as the version of kustomize and the tool that runs it.
    pub options: Options,
    /// The reason why Flux may build another artifact than the one that is checked; `None` if there is no such reason.
    /// If there is one, findings only warn and never deny, because the other artifact may fix them.
    pub late: Option<&'static str>,
    /// Whether the Flux Kustomization that builds the folder is itself an object that Flux applies. A new revision can
    /// then change this Kustomization too, so errors in its fields only cause warnings.
    pub follows_revision: bool,
}

/// Namespace and name of the Flux Kustomization that builds a folder with kustomization files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootOwner {
    /// The namespace of the Kustomization.
    pub namespace: String,
    /// The name of the Kustomization.
    pub name: String,
}

impl RootOwner {
    /// Returns the namespace and the name of `object`, which is a Flux Kustomization.
    pub(super) fn of(object: &serde_json::Value) -> Self {
        let metadata = Metadata::of(object);
        Self { namespace: metadata.namespace().to_owned(), name: metadata.name().to_owned() }
    }
}

impl fmt::Display for RootOwner {
    /// Formats the kind, namespace and name of the Kustomization, such as `Kustomization flux-system/apps`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kustomization {}/{}", self.namespace, self.name)
    }
}

impl Root {
    /// Returns the artifact that contains the files of this root. `None` if a Kubernetes object contains the files. In
    /// that case, there is nothing to fetch.
    pub fn artifact(&self) -> Option<&Artifact> {
        match &self.content {
            Content::Artifact(artifact) => Some(artifact),
            Content::Carried(_) => None,
        }
    }
}

/// A selection of the folders in a file tree that are built.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum At {
    /// One folder, given by its path in the tree.
    Folder(String),
    /// The folder with this path, if it contains a `kustomization.yaml`. Otherwise no folder is built, because Fleet
    /// does not run kustomize there.
    FolderIfAny(String),
    /// Every folder that has a kustomization file and to which no other folder refers. If folders refer to each other
    /// in a cycle, one folder of the cycle is built.
    EveryRoot,
}

/// The source of the kustomization files to check: an artifact on a server, or a Kubernetes object that contains the
/// files, such as a ConfigMap.
#[derive(Clone)]
pub enum Content {
    /// An artifact of a Flux source, which must be fetched.
    Artifact(Artifact),
    /// Files or an archive in a Kubernetes object, such as a Bundle of Fleet. The function in this variant unpacks the
    /// files, or returns an error message.
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

/// Returns the definitions of all checks of kustomize trees, in the order in which they run.
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

/// Returns the CustomResourceDefinitions with which a cluster can store the kinds Kustomization and Component of
/// kustomize.
pub fn definitions() -> Vec<&'static Definition> {
    definitions::DEFINITIONS.to_vec()
}

/// Returns whether the request is an update that does not affect the kustomize build for its object, such as a Flux
/// Kustomization. For example, the update changes only finalizers, the status, or the interval of the Kustomization.
///
/// Findings about the kustomization files then only warn, so that such an update is not denied.
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

/// Returns the folder in the annotation `portcullis.dev/path` of an object; `None` if the annotation is not set.
fn path_annotation(object: &serde_json::Value) -> Option<&str> {
    Metadata::of(object).annotation(PATH_ANNOTATION)
}
