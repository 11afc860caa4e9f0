//! The annotations of Landscaper and its deployers, and those of Portcullis on the same objects.
//!
//! Source: `HasIgnoreAnnotation`, `HasDeleteWithoutUninstallAnnotation`, `GetOperation` and others in Landscaper's
//! `apis/core/v1alpha1/helper/helpers.go`. Keys and values are case-sensitive and are not trimmed.

use serde_json::Value;

use crate::admission::Metadata;

/// The annotation that makes Landscaper ignore an object.
pub const IGNORE: &str = "landscaper.gardener.cloud/ignore";
/// The annotation that makes Landscaper delete an object without uninstalling the deployed resources. In this case,
/// only the finalizer is removed.
pub const DELETE_WITHOUT_UNINSTALL: &str = "landscaper.gardener.cloud/delete-without-uninstall";
/// The annotation that makes the Helm deployer cache charts.
pub const CACHE_HELM_CHARTS: &str = "landscaper.gardener.cloud/cache-helm-charts";
/// The annotation that makes Landscaper reconcile an object after each change of its spec.
pub const RECONCILE_IF_CHANGED: &str = "landscaper.gardener.cloud/reconcile-if-changed";
/// The annotation that requests one operation on an object, such as `reconcile`.
pub const OPERATION: &str = "landscaper.gardener.cloud/operation";
/// The value of [`OPERATION`] that makes Landscaper start a job for the object.
pub const RECONCILE: &str = "reconcile";

/// The annotation with the type of the deployer that must process a DeployItem.
pub const TYPE_ANNOTATION: &str = "landscaper.gardener.cloud/deployer-type";
/// The annotation with the name of the Target of a DeployItem.
pub const TARGET_ANNOTATION: &str = "landscaper.gardener.cloud/deployer-target-name";

/// The dry-run annotation. An object is in dry run if its annotation has the value `"true"`.
pub const DRY_RUN_ANNOTATION: &str = "landscaper.gardener.cloud/dry-run";
/// The annotation on an object that contains the name of its DryRunConfiguration. The DryRunConfiguration must be in
/// the same namespace as the object.
pub const CONFIGURATION_ANNOTATION: &str = "landscaper.gardener.cloud/dry-run-configuration";
/// The deployer type that routes DeployItems in dry run to the dry-run deployer.
///
/// Portcullis writes this type into [`TYPE_ANNOTATION`] during admission. Deployers compare the annotation with their
/// own type. `spec.type` stays unchanged.
pub const ROUTE: &str = "portcullis.dev/dry-run";

/// The annotation on an Installation with a JSON Patch that changes the component reference of the Installation. The
/// patch contains the changes that the entries of a ComponentVersionOverwrites object make.
pub const PATCH_ANNOTATION: &str = "portcullis.dev/overwrite-patch";
/// The annotation on an Installation with the inputs from which the JSON Patch in `portcullis.dev/overwrite-patch` was
/// computed. Examples are the name of the ComponentVersionOverwrites object and the original component reference.
pub const SOURCE_ANNOTATION: &str = "portcullis.dev/overwrite-source";
/// The annotation on an Installation with a summary of its component tree.
pub const TREE_ANNOTATION: &str = "portcullis.dev/overwrite-tree";

/// Returns the value of the annotation `key` of an object; `None` if the annotation is missing or not a string.
pub fn text<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    Metadata::of(object).annotation(key)
}

/// Reports whether the annotation `key` of an object has the value `"true"`.
pub fn is_set(object: &Value, key: &str) -> bool {
    text(object, key) == Some("true")
}

/// Returns the value of the annotation [`OPERATION`] of an object, such as `reconcile`; empty if the annotation is
/// missing.
pub fn operation(object: &Value) -> &str {
    text(object, OPERATION).unwrap_or_default()
}
