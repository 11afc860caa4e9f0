//! The annotations with which users control Landscaper and its deployers.
//!
//! Source: `HasIgnoreAnnotation`, `HasDeleteWithoutUninstallAnnotation`, `GetOperation` and others in Landscaper's
//! `apis/core/v1alpha1/helper/helpers.go`. Keys and values are case-sensitive and are not trimmed.

use serde_json::Value;

/// Makes Landscaper ignore an object.
pub const IGNORE: &str = "landscaper.gardener.cloud/ignore";
/// Makes Landscaper remove the finalizer without uninstalling.
pub const DELETE_WITHOUT_UNINSTALL: &str = "landscaper.gardener.cloud/delete-without-uninstall";
/// Makes the Helm deployer cache charts.
pub const CACHE_HELM_CHARTS: &str = "landscaper.gardener.cloud/cache-helm-charts";
/// Makes Landscaper reconcile after each change of the spec.
pub const RECONCILE_IF_CHANGED: &str = "landscaper.gardener.cloud/reconcile-if-changed";
/// Requests an operation once, such as `reconcile`.
pub const OPERATION: &str = "landscaper.gardener.cloud/operation";
/// The value of [`OPERATION`] that starts a job.
pub const RECONCILE: &str = "reconcile";

/// Returns the value of an annotation; `None` if it is missing or not a string.
pub fn text<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object.get("metadata")?.get("annotations")?.get(key)?.as_str()
}

/// Reports whether a boolean annotation is set: only `"true"` counts.
pub fn is_set(object: &Value, key: &str) -> bool {
    text(object, key) == Some("true")
}

/// Returns the requested operation; empty if there is none.
pub fn operation(object: &Value) -> &str {
    text(object, OPERATION).unwrap_or_default()
}
