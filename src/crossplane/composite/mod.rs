//! Composites: which Composition one uses, and which EnvironmentConfigs it refers to.

pub mod claim;
pub mod composition;
pub mod computed;
pub mod labels;
pub mod mutator;
pub mod unanswered;
pub mod writes;
pub mod writing;

use serde_json::Value;

/// What patches from the environment write into each composed resource: a JSON Patch of its base by its name.
pub const PATCHES_ANNOTATION: &str = "portcullis.dev/environment-patches";
/// What [`PATCHES_ANNOTATION`] was worked out from.
pub const SOURCE_ANNOTATION: &str = "portcullis.dev/environment-source";

/// The part of a composite that is Crossplane's: `spec`, and since Crossplane 2 `spec.crossplane`.
fn machinery(composite: &Value) -> Option<&Value> {
    let spec = composite.get("spec")?;
    Some(spec.get("crossplane").filter(|inner| inner.is_object()).unwrap_or(spec))
}

/// The name of the Composition that a composite names.
pub fn composition_name(composite: &Value) -> Option<&str> {
    machinery(composite)?.get("compositionRef")?.get("name")?.as_str().filter(|name| !name.is_empty())
}

/// The names of the EnvironmentConfigs that a composite refers to, each in its place; empty where a reference has none.
pub fn references(composite: &Value) -> Vec<&str> {
    let list = composite.get("spec").and_then(|spec| spec.get("environmentConfigRefs")?.as_array());
    let references = list.into_iter().flatten();
    references.map(|reference| reference.get("name").and_then(Value::as_str).unwrap_or_default()).collect()
}
