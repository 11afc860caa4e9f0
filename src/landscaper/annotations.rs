//! The annotations with which users steer Landscaper and its deployers.
//!
//! Source: `HasIgnoreAnnotation`, `HasDeleteWithoutUninstallAnnotation`, `GetOperation` and their neighbours in Landscaper's
//! `apis/core/v1alpha1/helper/helpers.go`: keys and values count as they are written, in no other case and without blanks.

use serde_json::Value;

/// Asks for nothing to be done with an object.
pub const IGNORE: &str = "landscaper.gardener.cloud/ignore";
/// Asks for the finalizer to be taken off without uninstalling.
pub const DELETE_WITHOUT_UNINSTALL: &str = "landscaper.gardener.cloud/delete-without-uninstall";
/// Asks the helm deployer to keep charts.
pub const CACHE_HELM_CHARTS: &str = "landscaper.gardener.cloud/cache-helm-charts";
/// Asks for a reconcile whenever the spec was changed.
pub const RECONCILE_IF_CHANGED: &str = "landscaper.gardener.cloud/reconcile-if-changed";
/// Asks for something to be done once, such as `reconcile`.
pub const OPERATION: &str = "landscaper.gardener.cloud/operation";
/// The value of [`OPERATION`] that starts a job.
pub const RECONCILE: &str = "reconcile";

/// What an object's annotation says, where it is there and a text.
pub fn text<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object.get("metadata")?.get("annotations")?.get(key)?.as_str()
}

/// Whether an annotation of yes and no says yes: only `"true"` does.
pub fn is_set(object: &Value, key: &str) -> bool {
    text(object, key) == Some("true")
}

/// What is to be done once; empty for nothing.
pub fn operation(object: &Value) -> &str {
    text(object, OPERATION).unwrap_or_default()
}
