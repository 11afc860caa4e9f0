//! The values that patches from the environment write into a composite, and the patches whose values the API server
//! would not store.
//!
//! A mutating webhook may write `spec`, labels and annotations. It leaves values to Crossplane if the API server
//! prunes, rejects or may reject them. If the webhook wrote a pruned value, it would write the value again with every
//! request. If it wrote a rejected value, the request would fail, although its user did not write the value.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::claim::Subject;
use super::computed::{Computed, writes_composite};
use super::{PATCHES_ANNOTATION, SOURCE_ANNOTATION};
use crate::admission::{FieldPath, Operation, Request, json};
use crate::catalog::{Stored, View};
use crate::crossplane::environment::Ending;
use crate::crossplane::field_path::{Path, Segment};
use crate::crossplane::kinds::DEFINITIONS;
use crate::crossplane::structural::{CROSSPLANE_FIELDS, Field, Structural, Violation};
use crate::names;

/// A check of the values that a mutating webhook writes into the composite of a request. It reports the values that the
/// API server would not store.
pub struct Writable {
    schema: Option<Structural>,
    operation: Operation,
}

/// The values that patches from the environment write into a composite, and the patches whose values the API server
/// would not store.
#[derive(Debug, Default)]
pub struct Writes {
    /// The values that a mutating webhook can write into the composite, each with its field path. A value is omitted if
    /// the API server would reject it or drop it.
    pub fields: Vec<(Path, Value)>,
    /// The patches whose values the API server would reject or drop.
    pub refused: Vec<Refused>,
}

/// A patch whose value the API server would reject or drop.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused {
    /// The field path of the patch in the Composition, such as `spec.environment.patches[0]`.
    pub patch: FieldPath,
    /// The path in the composite to which the patch writes.
    pub path: String,
    /// The reason why the API server would not store the value.
    pub why: Refusal,
}

/// The reason why the API server does not store a value.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The API server drops the value or a part of it, because the schema of the composite does not declare the field.
    Pruned {
        /// The longest prefix of the path that the schema declares, such as `spec.parameters`.
        at: String,
        /// Names of fields that the object at the path `at` can contain, for the help text:
        ///
        /// - If the schema does not declare the field: fields that the schema declares, the most similar one first.
        /// - If the API server drops a part of the value: the fields that it stores.
        /// - If the API server drops the whole value of a declared field: none.
        has: Vec<String>,
    },
    /// The API server rejects the value. The string is the reason.
    Invalid(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pruned { .. } => f.write_str("the composite's schema lacks the field, so the API server drops it"),
            Self::Invalid(why) => write!(f, "the API server rejects the value: {why}"),
        }
    }
}

impl Refusal {
    /// Returns a text that tells the user how to fix the refused patch.
    pub fn help(&self) -> String {
        match self {
            Self::Pruned { at, has } if has.is_empty() => format!("{at} has no members; add the field to the schema"),
            Self::Pruned { at, has } => {
                format!("{at} has {}; add the field to the schema, or correct the path", has.join(", "))
            }
            Self::Invalid(_) => "correct the patch, the data or the schema".to_owned(),
        }
    }
}

/// Returns the CompositeResourceDefinition of a request's composite; `None` if the catalog does not contain it.
pub fn definition(request: &Request<'_>, view: &View<'_>) -> Option<Arc<Stored>> {
    let Subject { plural, .. } = Subject::of(request.object(), request, view);
    view.find(&DEFINITIONS, "", &format!("{plural}.{}", request.resource.group))
}

impl Writable {
    /// Creates a check for the values that a webhook writes into the composite in `request`. Reads the schema of the
    /// composite from its CompositeResourceDefinition in `view`.
    pub fn of(request: &Request<'_>, view: &View<'_>) -> Self {
        let definition = definition(request, view);
        let schema = definition.and_then(|found| Structural::of(found.value(), &request.resource.version));
        Self { schema, operation: request.operation }
    }

    /// Returns a composite as the API server stores it. Returns an unchanged copy if the schema is unknown.
    pub fn stored(&self, composite: &Value) -> Value {
        self.schema.as_ref().map_or_else(|| composite.clone(), |schema| schema.stored(composite))
    }

    /// Returns the values that patches copy from the environment to `composite`. Patches whose values the API server
    /// would reject or drop are returned in a separate list. `computed` contains the environment and the results of all
    /// patches.
    pub fn writes(&self, composite: &Value, computed: &Computed) -> Writes {
        let mut writer = Writer { writable: self, written: composite.clone(), writes: Writes::default() };
        for (step, at, patch, outcome) in computed.environment_patches() {
            if !writes_composite(patch) || outcome.ending != Ending::Written {
                continue;
            }
            let field = computed.declaration.steps[step].field.key("environment").key("patches").index(at);
            for path in outcome.written.iter().filter_map(|path| Path::parse(path).ok()) {
                let Ok(value) = path.get(&computed.computation.composite) else { continue };
                if let Err(why) = writer.write(&path, value) {
                    writer.writes.refused.push(Refused { patch: field.clone(), path: path.to_string(), why });
                }
            }
        }
        writer.writes
    }
}

struct Writer<'w> {
    writable: &'w Writable,
    /// The composite with all values that were written so far.
    written: Value,
    writes: Writes,
}

impl Writer<'_> {
    /// Writes a value into the composite, if a mutating webhook may write this field. If the API server would not store
    /// the value, returns the reason as the error.
    fn write(&mut self, path: &Path, value: &Value) -> Result<(), Refusal> {
        let names: Vec<&str> = path.segments().iter().map(name).collect();
        match names.as_slice() {
            ["spec", field, ..] if !CROSSPLANE_FIELDS.contains(field) || is_connection(field) => {
                self.write_spec(path, value)
            }
            ["metadata", kind @ ("labels" | "annotations"), key]
                if ![PATCHES_ANNOTATION, SOURCE_ANNOTATION].contains(key) =>
            {
                self.write_metadata(path, kind, key, value)
            }
            _ => Ok(()),
        }
    }

    fn write_metadata(&mut self, path: &Path, kind: &str, key: &str, value: &Value) -> Result<(), Refusal> {
        let is_valid = |text: &str| kind == "annotations" || names::is_label_value(text);
        if !names::is_label_key(key) || !value.as_str().is_some_and(is_valid) {
            let what = if kind == "labels" { "label" } else { "annotation" };
            return Err(Refusal::Invalid(format!("{} is not a valid value of {what} {key}", json::brief(value))));
        }
        self.keep(path, value.clone());
        Ok(())
    }

    fn write_spec(&mut self, path: &Path, value: &Value) -> Result<(), Refusal> {
        let Some(schema) = &self.writable.schema else { return Ok(()) };
        if path.get(&self.written).is_ok_and(|there| there == value) {
            return Ok(());
        }
        if let Field::Pruned { at, has } = schema.at(path) {
            return Err(Refusal::Pruned { at, has });
        }
        let mut candidate = self.written.clone();
        if path.set(&mut candidate, value.clone()).is_err() {
            // Crossplane cannot write the value either.
            return Ok(());
        }
        let unpruned = std::mem::replace(&mut candidate, Value::Null);
        candidate = schema.stored(&unpruned);
        let known = schema.violations(&self.written);
        if let Some(new) = schema.violations(&candidate).into_iter().find(|violation| !known.contains(violation)) {
            // A violation in the unpruned value shows what the patch wrote.
            let written = schema.violations(&unpruned).into_iter().find(|violation| violation.field == new.field);
            return Err(Refusal::Invalid(Violation::to_string(&written.unwrap_or(new))));
        }
        let stored = path.get(&candidate).ok().cloned();
        if schema.undecided(path, self.writable.operation).is_some() {
            return Ok(());
        }
        match stored {
            Some(stored) if stored == *value => {
                self.keep(path, stored);
                Ok(())
            }
            // The API server stores a part of the value and drops the rest.
            Some(stored) => {
                self.keep(path, stored);
                Err(Refusal::Pruned { at: path.to_string(), has: members(path, &candidate) })
            }
            None => Err(Refusal::Pruned { at: path.to_string(), has: Vec::new() }),
        }
    }

    fn keep(&mut self, path: &Path, value: Value) {
        if path.set(&mut self.written, value.clone()).is_ok() {
            self.writes.fields.push((path.clone(), value));
        }
    }
}

/// Returns whether `field` is a field of `spec` for connection details. Crossplane adds such fields to composites, but
/// they do not affect which Composition is used or which resources are composed.
fn is_connection(field: &str) -> bool {
    ["publishConnectionDetailsTo", "writeConnectionSecretToRef"].contains(&field)
}

fn name(segment: &Segment) -> &str {
    match segment {
        Segment::Field(name) => name,
        Segment::Index(_) => "",
    }
}

fn members(path: &Path, object: &Value) -> Vec<String> {
    let members = path.get(object).ok().and_then(Value::as_object);
    members.into_iter().flat_map(|members| members.keys().cloned()).collect()
}
