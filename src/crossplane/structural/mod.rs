//! The schema of a composite type, and how the API server applies it: pruning, defaults, validation.
//!
//! Crossplane creates a CustomResourceDefinition for each CompositeResourceDefinition. It copies the schemas of `spec`
//! and `status`, and adds its own fields to `spec` (`internal/xcrd` in Crossplane 1.17). The API server drops fields
//! that are not in the resulting schema, and reports no error. So a mutator that wrote an unknown field would write it
//! again at every request.

mod path;
mod store;
mod validate;

use serde_json::{Map, Value, json};

use super::field_path::Path;
use crate::admission::Operation;
use crate::suggestion::by_similarity;
pub use validate::Violation;

/// The fields that Crossplane adds to `spec` of every composite type.
pub const CROSSPLANE_FIELDS: [&str; 11] = [
    "claimRef",
    "compositionRef",
    "compositionRevisionRef",
    "compositionRevisionSelector",
    "compositionSelector",
    "compositionUpdatePolicy",
    "crossplane",
    "environmentConfigRefs",
    "publishConnectionDetailsTo",
    "resourceRefs",
    "writeConnectionSecretToRef",
];
/// Maximum number of field names that an error message suggests for a path that the schema does not have. The limit
/// keeps the message short.
const MAX_NAMES: usize = 8;

/// The schema of the field `spec` in one version of a composite type.
#[derive(Debug, Clone, PartialEq)]
pub struct Structural {
    spec: Value,
}

/// The result of looking up a field path in the schema of a composite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field<'s> {
    /// The schema declares the field. Contains the schema of the field.
    Declared(&'s Value),
    /// The API server stores the field, although the schema does not describe it.
    Unknown,
    /// The API server prunes the field.
    Pruned {
        /// The longest prefix of the path that the schema declares, such as `spec.parameters`.
        at: String,
        /// The fields that the schema declares for the object at the path `at`. The field that is most similar to the
        /// missing field is first.
        has: Vec<String>,
    },
}

impl Structural {
    /// Extracts the schema of a version from a CompositeResourceDefinition. `None` if the version declares no schema.
    pub fn of(definition: &Value, version: &str) -> Option<Self> {
        let versions = definition.get("spec")?.get("versions")?.as_array()?;
        let version = versions.iter().find(|one| one.get("name").is_some_and(|name| name == version))?;
        let mut spec = version.get("schema")?.get("openAPIV3Schema")?.pointer("/properties/spec")?.clone();
        // Crossplane takes the members of `spec` and leaves everything else that may be written there.
        spec.as_object_mut()?.remove("additionalProperties");
        Some(Self { spec })
    }

    /// Returns the composite as the API server stores it. Unknown fields are removed, and defaults are set.
    pub fn stored(&self, composite: &Value) -> Value {
        let mut stored = composite.clone();
        if let Some(members) = stored.as_object_mut() {
            members.retain(|key, _| ["apiVersion", "kind", "metadata", "spec", "status"].contains(&key.as_str()));
        }
        if let Some(spec) = stored.get_mut("spec").and_then(Value::as_object_mut) {
            let own = taken(spec);
            let mut rest = Value::Object(std::mem::take(spec));
            store::store(&mut rest, &self.spec);
            if let Value::Object(rest) = rest {
                *spec = rest;
            }
            spec.extend(own);
        }
        stored
    }

    /// Looks up a path that begins with `spec` in this schema.
    pub fn at(&self, path: &Path) -> Field<'_> {
        path::at(&self.spec, path)
    }

    /// Returns the violations in `spec` for which the API server would reject the composite. Violations of CEL rules
    /// and formats are not included.
    pub fn violations(&self, composite: &Value) -> Vec<Violation> {
        let mut spec = composite.get("spec").cloned().unwrap_or_else(|| json!({}));
        let own = spec.as_object_mut().map(taken).unwrap_or_default();
        // The definition may require fields that belong to Crossplane.
        let mut schema = self.spec.clone();
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| !name.as_str().is_some_and(|name| own.contains_key(name)));
        }
        validate::violations(&spec, &schema)
    }

    /// Returns a description of the first CEL rule or format that may reject a value at a path. `None` if there is
    /// none. Rules that need `oldSelf` count only if `operation` is an update. This function does not evaluate CEL
    /// rules or formats.
    pub fn undecided(&self, path: &Path, operation: Operation) -> Option<String> {
        path::undecided(&self.spec, path, operation)
    }
}

/// Removes Crossplane's own fields from `spec` and returns them.
fn taken(spec: &mut Map<String, Value>) -> Map<String, Value> {
    let mut own = Map::new();
    for key in CROSSPLANE_FIELDS {
        if let Some(value) = spec.remove(key) {
            own.insert(key.to_owned(), value);
        }
    }
    own
}

fn sorted(names: Option<&Map<String, Value>>, wanted: &str) -> Vec<String> {
    let names = names.into_iter().flat_map(|members| members.keys().map(String::as_str));
    by_similarity(wanted, names, MAX_NAMES).into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
