//! Detects namespaces that are being deleted.

use serde_json::Value;

use crate::admission::Metadata;
use crate::catalog::{NAMESPACES, View};

/// Reports whether a namespace is being deleted; `false` if the namespace is unknown. Portcullis's Landscaper rules do
/// not deny deletions of objects in a namespace that is being deleted.
pub(super) fn is_terminating(namespace: &str, view: &View<'_>) -> bool {
    let Some(stored) = view.find(&NAMESPACES, "", namespace) else { return false };
    let phase = stored.value().pointer("/status/phase").and_then(Value::as_str);
    Metadata::of(stored.value()).is_deleting() || phase == Some("Terminating")
}
