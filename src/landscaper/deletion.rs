//! Objects and namespaces that are being deleted.

use serde_json::Value;

use crate::catalog::{NAMESPACES, View};

/// Reports whether an object has a `deletionTimestamp`: it is being deleted, but finalizers keep it.
pub(super) fn is_being_deleted(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
}

/// Reports whether a namespace is being deleted. No rule denies a deletion in such a namespace.
pub(super) fn is_terminating(namespace: &str, view: &View<'_>) -> bool {
    let Some(stored) = view.find(&NAMESPACES, "", namespace) else { return false };
    let phase = stored.value().pointer("/status/phase").and_then(Value::as_str);
    is_being_deleted(stored.value()) || phase == Some("Terminating")
}
