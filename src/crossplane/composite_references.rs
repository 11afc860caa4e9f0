//! The references in a composite: its Composition and its EnvironmentConfigs.

use serde_json::Value;

/// Returns the part of a composite that contains Crossplane's own fields. This is `spec.crossplane` if it exists, as in
/// Crossplane 2, and otherwise `spec`. `None` if the composite has no `spec`.
pub(super) fn crossplane_fields(composite: &Value) -> Option<&Value> {
    let spec = composite.get("spec")?;
    Some(spec.get("crossplane").filter(|inner| inner.is_object()).unwrap_or(spec))
}

/// Returns the name of the Composition in the `compositionRef` of a composite; `None` if it is missing or empty.
pub fn composition_name(composite: &Value) -> Option<&str> {
    crossplane_fields(composite)?.get("compositionRef")?.get("name")?.as_str().filter(|name| !name.is_empty())
}

/// Returns the names in `spec.environmentConfigRefs`, in order. The name is empty if a reference has none.
pub fn references(composite: &Value) -> Vec<&str> {
    let list = composite.get("spec").and_then(|spec| spec.get("environmentConfigRefs")?.as_array());
    let references = list.into_iter().flatten();
    references.map(|reference| reference.get("name").and_then(Value::as_str).unwrap_or_default()).collect()
}
