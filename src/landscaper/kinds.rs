//! The kinds of Landscaper's API that rules look up, and their indexes.

use super::annotations::{
    CONFIGURATION_ANNOTATION, DRY_RUN_ANNOTATION, PATCH_ANNOTATION, SOURCE_ANNOTATION, TREE_ANNOTATION, TYPE_ANNOTATION,
};
pub use super::api::{GROUP, VERSION};
use super::dry_run_annotations::DryRunAnnotations;
use super::owner::{self, Owner, OwnerKind};
use super::{context, installation};
use crate::admission::Operation;
use crate::catalog::{EVERY, Index, Kind, Reference, Scope, Storage};
use crate::rule::{FailurePolicy, Match};

/// The kind `Context`: settings that several Installations share.
pub static CONTEXTS: Kind = Kind {
    group: GROUP,
    version: VERSION,
    kind: "Context",
    plural: "contexts",
    scope: Scope::Namespaced,
    indexes: &[&CONTEXTS_BY_OVERWRITES],
    storage: Storage::Parts(&[
        &["componentVersionOverwrites"],
        &["metadata", "deletionTimestamp"],
        &["registryPullSecrets"],
        &["repositoryContext"],
    ]),
};

/// Index of Contexts by the name of the ComponentVersionOverwrites object that they use.
pub static CONTEXTS_BY_OVERWRITES: Index = Index {
    name: "overwrites",
    parts: &[&["componentVersionOverwrites"]],
    keys: |object| keys(context::overwrites_name(object)),
};

/// The kind `ComponentVersionOverwrites`: a list of replacements for component references.
pub static OVERWRITES: Kind = Kind {
    group: GROUP,
    version: VERSION,
    kind: "ComponentVersionOverwrites",
    plural: "componentversionoverwrites",
    scope: Scope::Namespaced,
    indexes: &[],
    storage: Storage::Parts(&[&["metadata", "generation"], &["overwrites"]]),
};

/// The kind `Installation`: a component that Landscaper installs.
pub static INSTALLATIONS: Kind = Kind {
    group: GROUP,
    version: VERSION,
    kind: "Installation",
    plural: "installations",
    scope: Scope::Namespaced,
    indexes: &[&INSTALLATIONS_BY_CONTEXT, &BY_OWNER, &BY_DRY_RUN_CONFIGURATION],
    storage: Storage::Parts(&[
        &["metadata", "annotations", CONFIGURATION_ANNOTATION],
        &["metadata", "annotations", DRY_RUN_ANNOTATION],
        &["metadata", "annotations", TYPE_ANNOTATION],
        &["metadata", "annotations", PATCH_ANNOTATION],
        &["metadata", "annotations", SOURCE_ANNOTATION],
        &["metadata", "annotations", TREE_ANNOTATION],
        &["metadata", "deletionTimestamp"],
        &["metadata", "ownerReferences"],
        &["metadata", "resourceVersion"],
        &["metadata", "uid"],
        &["spec", "componentDescriptor"],
        &["spec", "context"],
        &["status", "conditions", EVERY, "message"],
        &["status", "conditions", EVERY, "reason"],
        &["status", "conditions", EVERY, "status"],
        &["status", "conditions", EVERY, "type"],
        &["status", "jobID"],
        &["status", "jobIDFinished"],
    ]),
};

/// Index of Installations by the name of their Context.
pub static INSTALLATIONS_BY_CONTEXT: Index = Index {
    name: "context",
    parts: &[&["spec", "context"]],
    keys: |object| keys(Some(installation::context_name(object))),
};

/// The kind `Execution`: the templates of the DeployItems of an Installation. An Execution has the same name as its
/// Installation.
pub static EXECUTIONS: Kind = Kind {
    group: GROUP,
    version: VERSION,
    kind: "Execution",
    plural: "executions",
    scope: Scope::Namespaced,
    indexes: &[&BY_OWNER],
    storage: Storage::Parts(&[
        &["metadata", "annotations", CONFIGURATION_ANNOTATION],
        &["metadata", "annotations", DRY_RUN_ANNOTATION],
        &["metadata", "annotations", TYPE_ANNOTATION],
        &["metadata", "deletionTimestamp"],
        &["metadata", "ownerReferences"],
        &["metadata", "resourceVersion"],
        &["metadata", "uid"],
    ]),
};

/// The kind `DeployItem` of Landscaper: a unit of work for a deployer.
pub static DEPLOY_ITEMS: Kind = Kind {
    group: GROUP,
    version: VERSION,
    kind: "DeployItem",
    plural: "deployitems",
    scope: Scope::Namespaced,
    indexes: &[&BY_OWNER, &BY_DRY_RUN_CONFIGURATION],
    storage: Storage::Parts(&[
        &["metadata", "annotations", CONFIGURATION_ANNOTATION],
        &["metadata", "annotations", DRY_RUN_ANNOTATION],
        &["metadata", "annotations", TYPE_ANNOTATION],
        &["metadata", "deletionTimestamp"],
        &["metadata", "ownerReferences"],
        &["metadata", "resourceVersion"],
        &["metadata", "uid"],
        &["spec", "config", "apiVersion"],
        &["spec", "config", "exports"],
        &["spec", "config", "exportsFromManifests"],
        &["spec", "config", "kind"],
        &["spec", "target", "name"],
        &["spec", "type"],
        &["status", "deployer"],
        &["status", "jobID"],
        &["status", "jobIDFinished"],
        &["status", "phase"],
    ]),
};

/// The kind `Target`: the environment that a deployer installs into. Only the metadata of a Target is cached, not its
/// credentials.
pub static TARGETS: Kind = Kind {
    group: GROUP,
    version: VERSION,
    kind: "Target",
    plural: "targets",
    scope: Scope::Namespaced,
    indexes: &[],
    storage: Storage::Parts(&[&["metadata", "labels"], &["metadata", "annotations"]]),
};

/// The kind `DeployerRegistration`: the types of DeployItems that a deployer serves. Landscaper removed this kind in
/// version 0.99.
pub static DEPLOYER_REGISTRATIONS: Kind = Kind {
    group: GROUP,
    version: VERSION,
    kind: "DeployerRegistration",
    plural: "deployerregistrations",
    scope: Scope::Cluster,
    indexes: &[&ALL],
    storage: Storage::Parts(&[&["spec", "types"]]),
};

/// An index that lists all objects of a kind under one key, the empty text.
pub static ALL: Index = Index { name: "all", parts: &[], keys: |_| vec![String::new()] };

/// The kind `DryRunConfiguration`, which Portcullis adds to Landscaper's API group. An object of this kind contains
/// parts of Kubernetes objects. DeployItems in a dry run read their exports from these parts, because nothing is
/// deployed to their Targets.
pub static DRY_RUN_CONFIGURATIONS: Kind = Kind {
    group: GROUP,
    version: VERSION,
    kind: "DryRunConfiguration",
    plural: "dryrunconfigurations",
    scope: Scope::Namespaced,
    indexes: &[],
    storage: Storage::Parts(&[&["spec"]]),
};

/// Index of objects by their owner. The keys are `Installation/` or `Execution/`, followed by the name of the owner.
pub static BY_OWNER: Index = Index {
    name: "owner",
    parts: &[
        &["metadata", "ownerReferences", EVERY, "apiVersion"],
        &["metadata", "ownerReferences", EVERY, "controller"],
        &["metadata", "ownerReferences", EVERY, "kind"],
        &["metadata", "ownerReferences", EVERY, "name"],
    ],
    keys: |object| owner::owner(object).map(|owner| owner_key(owner.kind.name(), owner.name)).into_iter().collect(),
};

/// Returns the key under which the index [`BY_OWNER`] lists the objects of an owner, such as `Installation/app`.
pub fn owner_key(kind: &str, name: &str) -> String {
    format!("{kind}/{name}")
}

/// Returns a reference to an owner, to look it up in the cache of objects. An owner is always in the same namespace as
/// the object that it owns. `namespace` is this namespace.
pub fn owner_reference(owner: &Owner<'_>, namespace: &str) -> Reference {
    let kind = match owner.kind {
        OwnerKind::Installation => &INSTALLATIONS,
        OwnerKind::Execution => &EXECUTIONS,
    };
    Reference::new(kind, namespace, owner.name)
}

/// Index of objects in dry run, by the name of the DryRunConfiguration that they use.
pub static BY_DRY_RUN_CONFIGURATION: Index = Index {
    name: "dry-run-configuration",
    parts: &[&["metadata", "annotations", CONFIGURATION_ANNOTATION], &["metadata", "annotations", DRY_RUN_ANNOTATION]],
    keys: |object| {
        let annotations = DryRunAnnotations::of(object);
        keys(annotations.configuration.filter(|_| annotations.is_dry_run()))
    },
};

fn keys(name: Option<&str>) -> Vec<String> {
    name.map(str::to_owned).into_iter().collect()
}

/// Reports whether a request is for objects of `kind`. Compares only the plural resource name, such as `installations`.
pub(super) fn is(kind: &Kind, request: &crate::admission::Request<'_>) -> bool {
    request.resource.plural == kind.plural
}

/// Returns a request matcher for updates of the subresource `status` of a kind.
pub(super) const fn status(kind: &'static Kind, failure_policy: FailurePolicy) -> Match {
    let status = matches(kind, &[crate::admission::Operation::Update], failure_policy);
    Match { subresource: "status", ..status }
}

/// The operations create and update, for request matchers.
pub(super) const WRITES: &[Operation] = &[Operation::Create, Operation::Update];
/// The operation update, for request matchers.
pub(super) const UPDATE: &[Operation] = &[Operation::Update];
/// The operation delete, for request matchers.
pub(super) const DELETION: &[Operation] = &[Operation::Delete];

/// Returns a request matcher for objects of a kind, without subresources.
pub(super) const fn matches(
    kind: &'static Kind,
    operations: &'static [Operation],
    failure_policy: FailurePolicy,
) -> Match {
    let Kind { group, plural, kind, .. } = kind;
    Match { group, versions: &[VERSION], plural, kind, subresource: "", operations, failure_policy, reads: None }
}
