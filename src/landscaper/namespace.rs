//! Namespaces on their way out: nothing in them is kept from being deleted.

use serde_json::Value;

use crate::catalog::{NAMESPACES, View};

/// Whether a namespace is being deleted.
pub(super) fn is_terminating(namespace: &str, view: &View<'_>) -> bool {
    let Some(stored) = view.find(&NAMESPACES, "", namespace) else { return false };
    let at = |pointer| stored.value().pointer(pointer).filter(|value| !value.is_null());
    at("/metadata/deletionTimestamp").is_some() || at("/status/phase").and_then(Value::as_str) == Some("Terminating")
}
