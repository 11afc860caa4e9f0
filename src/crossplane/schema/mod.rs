//! The schema that a Composition declares for its environment, as JSON Schema, and what stands there at a path.
//!
//! Crossplane knows no schema of an environment, so this is ours: in the annotation [`ANNOTATION`] of the Composition, or in a
//! ConfigMap that [`FROM_ANNOTATION`] names. It describes the merged environment, before patches. It is read as a structure,
//! as Kubernetes reads schemas: where properties are listed, there are no others unless `additionalProperties` says so.
//! Whatever cannot be told (`not`, `if`, a schema elsewhere) allows everything.

mod source;
mod types;
mod walk;

use std::sync::Arc;

use serde_json::Value;

use crate::crossplane::field_path::Path;
use crate::crossplane::go::regexp;
use crate::yaml;

pub use source::{ANNOTATION, CONFIG_MAPS, FROM_ANNOTATION, confirm, declared};
pub use types::Types;

/// The annotations of an object have 256 KiB together; a ConfigMap of more than that describes no environment.
pub const MAX_BYTES: usize = 256 << 10;
/// A schema of more parts takes too long for an admission; nobody describes so much.
const MAX_PARTS: usize = 10_000;

/// A schema that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    root: Value,
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Anything may.
    Anything,
    /// Something of these types.
    Something {
        /// The types.
        types: Types,
        /// Whether it is always there.
        is_required: bool,
    },
    /// Nothing.
    Nothing {
        /// The last place on the path that there is; empty for the environment itself.
        at: String,
        /// What that has: the names of its members, those first that are spelled alike.
        has: Vec<String>,
    },
}

/// Why there is no schema where one is declared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It is too long.
    #[error("has more than {MAX_BYTES} bytes")]
    TooLong,
    /// It has too many parts.
    #[error("has more than {MAX_PARTS} parts")]
    TooManyParts,
    /// It is no YAML, nor JSON.
    #[error("is neither JSON nor YAML: {0}")]
    Unreadable(String),
    /// A part of it is no schema.
    #[error("is no JSON Schema: {at}: {why}")]
    Malformed {
        /// Where, as a JSON Pointer.
        at: String,
        /// Why.
        why: String,
    },
    /// The annotation names no ConfigMap.
    #[error("must name a key of a ConfigMap, as NAMESPACE/NAME/KEY")]
    NoReference,
    /// What it names is not there.
    #[error("names {0}, which does not exist")]
    Missing(String),
    /// What it names cannot be read.
    #[error("names {0}, which portcullis cannot read{1}")]
    Unread(String, &'static str),
}

impl Schema {
    /// Reads a schema, as JSON or YAML.
    ///
    /// # Errors
    /// When it is too large, cannot be read, or a part of it cannot be a schema.
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

    /// Whether all parts can be schemas.
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
            return if part.is_boolean() && !at.is_empty() { Ok(()) } else { wrong("", "a schema is an object") };
        };
        let is_known = |name: &Value| name.as_str().is_some_and(|name| Types::named(name).is_some());
        match members.get("type") {
            None => {}
            Some(Value::Array(names)) if names.iter().all(is_known) => {}
            Some(name) if is_known(name) => {}
            Some(_) => return wrong("/type", "there are null, boolean, integer, number, string, array and object"),
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
                return wrong("/patternProperties", &format!("{pattern:?} is no regular expression of RE2"));
            }
        }
        match members.get("$ref").map(Value::as_str) {
            Some(None) => wrong("/$ref", "must be a text"),
            Some(Some(reference)) if is_local(reference) && self.target(reference).is_none() => {
                wrong("/$ref", &format!("{reference} leads nowhere"))
            }
            _ => Ok(()),
        }
    }

    /// What a local reference leads to.
    fn target(&self, reference: &str) -> Option<&Value> {
        self.root.pointer(reference.strip_prefix('#')?)
    }

    /// What stands at a path.
    pub fn at(&self, path: &Path) -> Found {
        walk::at(self, path)
    }
}

/// Members that hold schemas by names of the user's own.
const MAPS: &[&str] = &["properties", "patternProperties", "$defs", "definitions"];
/// Members that hold a schema.
const SINGLE: &[&str] = &["additionalProperties", "unevaluatedProperties", "items", "additionalItems", "then", "else"];
/// Members that hold a list of schemas.
const LISTS: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];

fn is_local(reference: &str) -> bool {
    reference.starts_with('#')
}

fn is_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(Value::is_string))
}

/// The schemas in a schema.
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
