//! Composites: the Composition and the EnvironmentConfigs that one uses.

pub mod claim;
pub mod composition;
pub mod computed;
pub mod labels;
pub mod mutator;
pub mod patch_problem;
pub mod write_mode;
pub mod writes;

use serde_json::Value;

/// The annotation with the patches from the environment: a JSON Patch of the base of each composed resource, by name.
pub const PATCHES_ANNOTATION: &str = "portcullis.dev/environment-patches";
/// The annotation with the inputs of [`PATCHES_ANNOTATION`], by name and version.
pub const SOURCE_ANNOTATION: &str = "portcullis.dev/environment-source";

/// Returns the object with Crossplane's own fields: `spec`, or `spec.crossplane` since Crossplane 2.
fn crossplane_fields(composite: &Value) -> Option<&Value> {
    let spec = composite.get("spec")?;
    Some(spec.get("crossplane").filter(|inner| inner.is_object()).unwrap_or(spec))
}

/// Returns the name of the Composition in `compositionRef`.
pub fn composition_name(composite: &Value) -> Option<&str> {
    crossplane_fields(composite)?.get("compositionRef")?.get("name")?.as_str().filter(|name| !name.is_empty())
}

/// Returns the names in `spec.environmentConfigRefs`, in order; an empty name for a reference without one.
pub fn references(composite: &Value) -> Vec<&str> {
    let list = composite.get("spec").and_then(|spec| spec.get("environmentConfigRefs")?.as_array());
    let references = list.into_iter().flatten();
    references.map(|reference| reference.get("name").and_then(Value::as_str).unwrap_or_default()).collect()
}
