//! The JSON Schema that a Composition declares for its environment.
//!
//! Crossplane itself has no schema for environments. Only Portcullis reads this schema. The schema is in the annotation
//! [`ANNOTATION`] of the Composition, or in a ConfigMap that [`FROM_ANNOTATION`] names. The schema describes the
//! environment after all EnvironmentConfigs are merged, and before patches change it. Portcullis interprets the schema
//! like a structural schema of Kubernetes. If the schema lists properties, it forbids other properties unless
//! `additionalProperties` allows them. Keywords that cannot be evaluated (`not`, `if`, remote references) allow
//! everything.

mod source;
mod types;
mod walk;

use std::sync::Arc;

use serde_json::Value;

use crate::crossplane::field_path::Path;
use crate::go::regexp;
use crate::yaml;

pub use source::{ANNOTATION, CONFIG_MAPS, FROM_ANNOTATION, declared, live_reads};
pub use types::Types;

/// Maximum size of a schema in bytes. All annotations of an object together are limited to the same size, so a schema
/// in an annotation cannot be larger. A larger text in a ConfigMap is probably not the schema of an environment.
pub const MAX_BYTES: usize = 256 << 10;
/// Maximum number of subschemas in a schema. Larger schemas would take too long during an admission request.
const MAX_PARTS: usize = 10_000;

/// A parsed JSON Schema of an environment.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    root: Value,
}

/// The values that a schema allows at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Any value is allowed.
    Anything,
    /// The schema allows only values that have one of the types in `types`.
    Something {
        /// The types that the value may have.
        types: Types,
        /// Whether the value always exists, because the schema requires the field and all its parents.
        is_required: bool,
    },
    /// No value is allowed: the schema does not have the path.
    Nothing {
        /// The longest prefix of the path that the schema declares. For example, this is `a.b` if the schema does not
        /// declare `c` in `a.b.c`. Empty if the schema does not declare the first segment of the path.
        at: String,
        /// The fields that the schema declares for the object at the path `at`. The field that is most similar to the
        /// missing field is first.
        has: Vec<String>,
    },
}

/// The reason why a declared schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The text of the schema has more than [`MAX_BYTES`] bytes.
    #[error("has more than {MAX_BYTES} bytes")]
    TooLong,
    /// The schema has more than `MAX_PARTS` subschemas.
    #[error("has more than {MAX_PARTS} parts")]
    TooManyParts,
    /// The text of the schema is not a single document in JSON or YAML. The string is the reason.
    #[error("is neither JSON nor YAML: {0}")]
    Unreadable(String),
    /// A part of the schema is invalid.
    #[error("is not a valid JSON Schema: {at}: {why}")]
    Malformed {
        /// The place of the invalid part, as a JSON Pointer.
        at: String,
        /// The reason why this part of the schema is invalid, such as `must be an object`.
        why: String,
    },
    /// The annotation [`FROM_ANNOTATION`] does not name a key of a ConfigMap.
    #[error("must name a key of a ConfigMap, as NAMESPACE/NAME/KEY")]
    NoReference,
    /// The annotation [`FROM_ANNOTATION`] names a ConfigMap or a key that does not exist.
    #[error("names {0}, which does not exist")]
    Missing(String),
    /// The ConfigMap that the annotation [`FROM_ANNOTATION`] names cannot be read. The fields are the name of the
    /// ConfigMap and the reason.
    #[error("names {0}, which portcullis cannot read{1}")]
    Unread(String, &'static str),
}

impl Schema {
    /// Parses a schema from JSON or YAML.
    ///
    /// # Errors
    /// If the text is too large, is not a single document in JSON or YAML, has too many subschemas, or has a part that
    /// is not a valid schema.
    pub fn read(text: &str) -> Result<Arc<Self>, SchemaError> {
        if text.len() > MAX_BYTES {
            return Err(SchemaError::TooLong);
        }
        let unreadable = |why: String| SchemaError::Unreadable(why);
        let documents = yaml::read(text, &yaml::Limits::default()).map_err(|error| unreadable(error.to_string()))?;
        let [document] = <[_; 1]>::try_from(documents).map_err(|_| unreadable("it must be one document".to_owned()))?;
        let schema = Self { root: document.value };
        schema.check()?;
        Ok(Arc::new(schema))
    }

    /// Returns an error if the schema or one of its subschemas is invalid, or if there are too many subschemas.
    fn check(&self) -> Result<(), SchemaError> {
        let (mut left, mut parts) = (vec![(String::new(), &self.root)], 0);
        while let Some((at, part)) = left.pop() {
            parts += 1;
            if parts > MAX_PARTS {
                return Err(SchemaError::TooManyParts);
            }
            self.check_part(&at, part)?;
            left.extend(children(&at, part));
        }
        Ok(())
    }

    fn check_part(&self, at: &str, part: &Value) -> Result<(), SchemaError> {
        let place = |key: &str| if key.is_empty() && at.is_empty() { "/".to_owned() } else { format!("{at}{key}") };
        let wrong = |key: &str, why: &str| Err(SchemaError::Malformed { at: place(key), why: why.to_owned() });
        let Some(members) = part.as_object() else {
            return if part.is_boolean() && !at.is_empty() { Ok(()) } else { wrong("", "must be an object") };
        };
        let is_known = |name: &Value| name.as_str().is_some_and(|name| Types::named(name).is_some());
        match members.get("type") {
            None => {}
            Some(Value::Array(names)) if names.iter().all(is_known) => {}
            Some(name) if is_known(name) => {}
            Some(_) => return wrong("/type", "must be null, boolean, integer, number, string, array or object"),
        }
        for key in MAPS {
            if members.get(*key).is_some_and(|value| !value.is_object()) {
                return wrong(&format!("/{key}"), "must be an object");
            }
        }
        if members.get("required").is_some_and(|required| !is_texts(required)) {
            return wrong("/required", "must be a list of names");
        }
        let patterns = members.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
        for (pattern, _) in patterns {
            if regexp::compile(pattern).is_err() {
                return wrong("/patternProperties", &format!("{pattern:?} is not an RE2 regular expression"));
            }
        }
        match members.get("$ref").map(Value::as_str) {
            Some(None) => wrong("/$ref", "must be a string"),
            Some(Some(reference)) if is_local(reference) && self.target(reference).is_none() => {
                wrong("/$ref", &format!("{reference} does not exist"))
            }
            _ => Ok(()),
        }
    }

    /// Resolves a local reference, such as `#/$defs/a`. `None` if the target does not exist.
    fn target(&self, reference: &str) -> Option<&Value> {
        self.root.pointer(reference.strip_prefix('#')?)
    }

    /// Returns the values that the schema allows at a path.
    pub fn at(&self, path: &Path) -> Found {
        walk::at(self, path)
    }
}

/// Keywords of JSON Schema whose value is a map from user-defined names to schemas.
const MAPS: &[&str] = &["properties", "patternProperties", "$defs", "definitions"];
/// Keywords of JSON Schema whose value is a schema.
const SINGLE: &[&str] = &["additionalProperties", "unevaluatedProperties", "items", "additionalItems", "then", "else"];
/// Keywords whose value is a list of schemas.
const LISTS: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];

fn is_local(reference: &str) -> bool {
    reference.starts_with('#')
}

fn is_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(Value::is_string))
}

/// Returns the subschemas of the schema `part` with their JSON Pointers. `at` is the JSON Pointer of `part`.
fn children<'s>(at: &str, part: &'s Value) -> Vec<(String, &'s Value)> {
    let mut found = Vec::new();
    for key in MAPS {
        let members = part.get(*key).and_then(Value::as_object).into_iter().flatten();
        found.extend(members.map(|(name, schema)| (format!("{at}/{key}/{name}"), schema)));
    }
    for key in SINGLE {
        match part.get(*key) {
            Some(Value::Array(items)) => {
                found.extend(items.iter().enumerate().map(|(index, schema)| (format!("{at}/{key}/{index}"), schema)));
            }
            Some(schema) => found.push((format!("{at}/{key}"), schema)),
            None => {}
        }
    }
    for key in LISTS {
        let items = part.get(*key).and_then(Value::as_array).into_iter().flatten().enumerate();
        found.extend(items.map(|(index, schema)| (format!("{at}/{key}/{index}"), schema)));
    }
    found
}

#[cfg(test)]
mod tests;
