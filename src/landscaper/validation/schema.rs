//! The schemas of Landscaper's kinds. A schema lists the fields that Landscaper decodes, and the types that their
//! values must have.
//!
//! Source: the Go types in Landscaper's `apis/core/v1alpha1`. As in Landscaper, `null` is the same as a missing field,
//! and unknown fields are ignored.

use serde_json::Value;

use crate::admission::{FieldPath, json as wire};
use crate::landscaper::decode::Problem;
use crate::landscaper::duration;

/// The type of a value in the schema of a kind. Landscaper can decode a value only if it has this type.
pub(in crate::landscaper) enum Type {
    /// Any value.
    Any,
    /// A string.
    Text,
    /// A boolean.
    Flag,
    /// An integer.
    Whole,
    /// A string with a duration in Landscaper's format.
    Duration,
    /// An object with any fields.
    Object,
    /// An object whose values all have this type.
    Map(&'static Type),
    /// A list whose elements all have this type.
    List(&'static Type),
    /// An object whose fields have these types. Fields that are not listed are ignored.
    Struct(&'static [(&'static str, Type)]),
}

use Type::{Any, Duration, Flag, List, Map, Object, Struct, Text, Whole};

static OWNER: Type = Struct(&[
    ("apiVersion", Text),
    ("kind", Text),
    ("name", Text),
    ("uid", Text),
    ("controller", Flag),
    ("blockOwnerDeletion", Flag),
]);
const METADATA: Type = Struct(&[
    ("name", Text),
    ("generateName", Text),
    ("namespace", Text),
    ("labels", Map(&Text)),
    ("annotations", Map(&Text)),
    ("finalizers", List(&Text)),
    ("ownerReferences", List(&OWNER)),
]);
const COMPONENT: Type = Struct(&[
    ("name", Text),
    ("version", Text),
    ("provider", Text),
    ("repositoryContexts", List(&Object)),
    ("sources", List(&Object)),
    ("componentReferences", List(&Object)),
    ("resources", List(&Object)),
]);
const COMPONENT_DESCRIPTOR: Type = Struct(&[
    ("ref", Struct(&[("repositoryContext", Object), ("componentName", Text), ("version", Text)])),
    ("inline", Struct(&[("meta", Struct(&[("schemaVersion", Text)])), ("component", COMPONENT)])),
]);
static DATA_IMPORT: Type = Struct(&[
    ("name", Text),
    ("dataRef", Text),
    ("version", Text),
    ("secretRef", Struct(&[("name", Text), ("key", Text)])),
    ("configMapRef", Struct(&[("name", Text), ("key", Text)])),
]);
static TARGET_IMPORT: Type = Struct(&[
    ("name", Text),
    ("target", Text),
    ("targets", List(&Text)),
    ("targetListRef", Text),
    ("targetMap", Map(&Text)),
    ("targetMapRef", Text),
]);
static DATA_EXPORT: Type = Struct(&[("name", Text), ("dataRef", Text)]);
static TARGET_EXPORT: Type = Struct(&[("name", Text), ("target", Text)]);

/// The schema of an Installation.
pub(in crate::landscaper) static INSTALLATION: Type = Struct(&[
    ("metadata", METADATA),
    (
        "spec",
        Struct(&[
            ("context", Text),
            ("verification", Struct(&[("signatureName", Text)])),
            ("componentDescriptor", COMPONENT_DESCRIPTOR),
            (
                "blueprint",
                Struct(&[("ref", Struct(&[("resourceName", Text)])), ("inline", Struct(&[("filesystem", Any)]))]),
            ),
            ("imports", Struct(&[("data", List(&DATA_IMPORT)), ("targets", List(&TARGET_IMPORT))])),
            ("importDataMappings", Map(&Any)),
            ("exports", Struct(&[("data", List(&DATA_EXPORT)), ("targets", List(&TARGET_EXPORT))])),
            ("exportDataMappings", Map(&Any)),
            (
                "automaticReconcile",
                Struct(&[
                    ("succeededReconcile", Struct(&[("interval", Duration), ("cronSpec", Text)])),
                    (
                        "failedReconcile",
                        Struct(&[("numberOfReconciles", Whole), ("interval", Duration), ("cronSpec", Text)]),
                    ),
                ]),
            ),
            ("optimization", Struct(&[("hasNoSiblingImports", Flag), ("hasNoSiblingExports", Flag)])),
        ]),
    ),
]);

/// The schema of a DeployItem.
pub(in crate::landscaper) static DEPLOY_ITEM: Type = Struct(&[
    ("metadata", METADATA),
    (
        "spec",
        Struct(&[
            ("type", Text),
            ("target", Struct(&[("name", Text), ("namespace", Text)])),
            ("context", Text),
            ("config", Any),
            ("timeout", Duration),
            ("updateOnChangeOnly", Flag),
            ("onDelete", Struct(&[("skipUninstallIfClusterRemoved", Flag)])),
        ]),
    ),
]);

/// The schema of an Execution. It does not describe the DeployItem templates in `spec`.
pub(in crate::landscaper) static EXECUTION: Type = Struct(&[("metadata", METADATA), ("spec", Object)]);

/// The schema of a Target.
pub(in crate::landscaper) static TARGET: Type = Struct(&[
    ("metadata", METADATA),
    ("spec", Struct(&[("type", Text), ("config", Any), ("secretRef", Struct(&[("name", Text), ("key", Text)]))])),
]);

/// The schema of an export in a DeployItem.
pub(in crate::landscaper) static EXPORT: Type = Struct(&[
    ("key", Text),
    ("jsonPath", Text),
    ("fromResource", Struct(&[("apiVersion", Text), ("kind", Text), ("name", Text), ("namespace", Text)])),
    ("fromObjectRef", Struct(&[("apiVersion", Text), ("kind", Text), ("jsonPath", Text)])),
    ("targetName", Text),
]);

impl Type {
    /// Adds a problem to `problems` for each part of a value that Landscaper cannot decode as this type.
    pub(in crate::landscaper) fn problems(&self, value: &Value, field: &FieldPath, problems: &mut Vec<Problem>) {
        if value.is_null() {
            return;
        }
        match (self, value) {
            (Map(inner), Value::Object(members)) => {
                members.iter().for_each(|(key, value)| inner.problems(value, &field.key(key), problems));
            }
            (List(inner), Value::Array(items)) => {
                items.iter().enumerate().for_each(|(at, value)| inner.problems(value, &field.index(at), problems));
            }
            (Struct(members), Value::Object(object)) => {
                let here = members.iter().filter_map(|(key, inner)| Some((key, inner, object.get(*key)?)));
                here.for_each(|(key, inner, value)| inner.problems(value, &field.key(key), problems));
            }
            _ if self.takes(value) => {}
            _ => problems.push(Problem {
                field: field.clone(),
                is: wire::kind_of(value),
                found: wire::brief(value),
                wanted: self.wanted(),
            }),
        }
    }

    fn takes(&self, value: &Value) -> bool {
        match self {
            Any => true,
            Text => value.is_string(),
            Flag => value.is_boolean(),
            Whole => value.is_i64() || value.is_u64(),
            Duration => value.as_str().is_some_and(duration::is_duration),
            Object => value.is_object(),
            Map(_) | List(_) | Struct(_) => false,
        }
    }

    fn wanted(&self) -> &'static str {
        match self {
            Any => "anything",
            Text => "a string",
            Flag => "true or false",
            Whole => "an integer",
            Duration => "a duration, such as 5m or none",
            Object | Map(_) | Struct(_) => "an object",
            List(_) => "a list",
        }
    }
}
