//! Decodes definitions from OpenAPI documents.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};

use super::definitions::{Definitions, Name, Shape, ShapeId};
use super::unique::Unique;
use crate::kustomize::file;
use crate::yaml::{self, Limits};

/// The prefix of a `$ref` to a definition in an OpenAPI document. The name of the definition follows the prefix.
const DEFINITIONS: &str = "#/definitions/";
/// The OpenAPI extension with the group, version and kind of the objects that a definition or operation describes.
const KINDS: &str = "x-kubernetes-group-version-kind";
/// The part of an API path that shows that the path is for namespaced objects.
const NAMESPACE: &str = "namespaces/{namespace}";

/// The reason why a text is not a valid OpenAPI document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadSchema {
    /// The file has no content. kustomize does not accept an empty file as an empty document.
    #[error("the schema is empty")]
    Empty,
    /// The text is neither valid JSON nor valid YAML, or is JSON with duplicate keys. Contains the error message.
    #[error("the schema is not valid JSON or YAML: {0}")]
    Syntax(String),
    /// A field of a schema has the wrong type. Contains the error message.
    #[error("{0}")]
    Field(String),
    /// It is unknown whether kustomize accepts the text. Contains the reason. For example, kustomize may parse the YAML
    /// differently than Portcullis.
    #[error("{0}")]
    Unknown(String),
    /// A part of the document has the wrong type. Contains the part and the expected type.
    #[error("{0} of the schema is not {1}")]
    Type(String, &'static str),
}

/// Parses the text of an OpenAPI document: as JSON if it begins with a brace, otherwise as YAML. Returns an error if
/// the text is empty or invalid, or if kustomize cannot decode the schemas in it.
pub(super) fn document(text: &str) -> Result<Value, BadSchema> {
    let syntax = |error: &dyn std::fmt::Display| BadSchema::Syntax(error.to_string());
    if text.is_empty() {
        return Err(BadSchema::Empty);
    }
    let document = if text.starts_with('{') {
        serde_json::from_str::<Unique>(text).map_err(|error| syntax(&error))?.0
    } else {
        let document = yaml::first(text, &Limits::default()).map_err(|error| match error.problem.is_open() {
            true => BadSchema::Unknown(error.to_string()),
            false => syntax(&error),
        })?;
        document.map_or(Value::Null, |document| document.value)
    };
    match &document {
        Value::Object(members) => decoded(members, text.starts_with('{'))?,
        Value::Null => {}
        _ => return Err(BadSchema::Type("the root".to_owned(), "an object")),
    }
    Ok(document)
}

/// Checks that kustomize can decode the schemas in an OpenAPI document. `is_json` states whether the document was
/// parsed from JSON.
fn decoded(document: &Map<String, Value>, is_json: bool) -> Result<(), BadSchema> {
    let Some(Value::Object(schemas)) = document.get("definitions") else { return Ok(()) };
    let found = file::schemas(schemas, is_json);
    match (found.fault, found.unknown) {
        (Some((_, fault)), _) => Err(BadSchema::Field(fault)),
        (None, Some((_, reason))) => Err(BadSchema::Unknown(reason)),
        (None, None) => Ok(()),
    }
}

/// Decodes the definitions of an OpenAPI document, with the kinds that they describe. Returns an error if a part of the
/// document has the wrong type.
pub(super) fn definitions(document: &Value) -> Result<Definitions, BadSchema> {
    let mut definitions = Definitions::default();
    for (name, schema) in object(document, "definitions")? {
        let shape = shape(schema, &mut definitions);
        let id = definitions.add_named(Name::Owned(name.clone()), shape);
        for kind in schema[KINDS].as_array().into_iter().flatten() {
            if let Some((api_version, kind)) = kind_of(kind, name)? {
                definitions.add_kind(api_version.into(), kind.into(), id);
            }
        }
    }
    definitions.sort();
    Ok(definitions)
}

/// Decodes the JSON schema in a YAML comment. The first definition of the result is this schema. `None` if the schema
/// is invalid or empty.
pub(super) fn fragment(text: &str) -> Option<Definitions> {
    let schema: Map<String, Value> = serde_json::from_str(text).ok()?;
    if schema.is_empty() {
        return None;
    }
    // The first definition is the schema in the comment; the others are parts of it.
    let mut definitions = Definitions::default();
    let first = definitions.add(Shape::default());
    let shape = shape(&Value::Object(schema), &mut definitions);
    *definitions.shape_mut(first)? = shape;
    Some(definitions)
}

/// Returns the apiVersion and kind of each cluster-scoped kind. A kind is cluster-scoped if the document has API paths
/// for it, and none of these paths contains a namespace. Returns an error if a part of the document has the wrong type.
pub(super) fn cluster_scoped(document: &Value) -> Result<BTreeSet<(String, String)>, BadSchema> {
    let mut scoped = HashMap::new();
    for (path, operations) in object(document, "paths")? {
        if let Some(kind) = kind_of(&operations["get"][KINDS], path)? {
            *scoped.entry(kind).or_insert(false) |= path.contains(NAMESPACE);
        }
    }
    Ok(scoped.into_iter().filter(|(_, has_namespace)| !has_namespace).map(|(kind, _)| kind).collect())
}

fn object<'d>(document: &'d Value, field: &str) -> Result<impl Iterator<Item = (&'d String, &'d Value)>, BadSchema> {
    match &document[field] {
        Value::Object(entries) => Ok(Some(entries)),
        Value::Null => Ok(None),
        _ => Err(BadSchema::Type(format!("`{field}`"), "an object")),
    }
    .map(|entries| entries.into_iter().flatten())
}

/// Returns the apiVersion and kind in an extension `x-kubernetes-group-version-kind`. `None` if the extension is not an
/// object. Returns an error if the version or the kind is missing, because kustomize then panics. `owner` is the
/// definition or path with the extension, for the error message.
fn kind_of(extension: &Value, owner: &str) -> Result<Option<(String, String)>, BadSchema> {
    let Value::Object(parts) = extension else { return Ok(None) };
    let part = |name: &str| parts.get(name).and_then(Value::as_str);
    let (Some(version), Some(kind)) = (part("version"), part("kind")) else {
        return Err(BadSchema::Type(format!("`{KINDS}` at `{owner}`"), "a group, version and kind"));
    };
    let api_version = match part("group") {
        None | Some("") => version.to_owned(),
        Some(group) => format!("{group}/{version}"),
    };
    Ok(Some((api_version, kind.to_owned())))
}

fn shape(schema: &Value, definitions: &mut Definitions) -> Shape {
    let text = |field: &str| schema[field].as_str();
    let mut add = |schema: &Value| {
        let shape = shape(schema, definitions);
        definitions.add(shape)
    };
    let fields: Vec<(Name, ShapeId)> = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, schema)| (Name::Owned(name.clone()), add(schema)))
        .collect();
    let values = schema.get("additionalProperties").filter(|values| values.is_object()).map(&mut add);
    let items = schema.get("items").filter(|items| items.is_object()).map(&mut add);
    Shape {
        reference: text("$ref").map(|name| Name::Owned(name.strip_prefix(DEFINITIONS).unwrap_or(name).to_owned())),
        fields: fields.into(),
        values,
        is_array: schema["type"] == "array" || schema["type"] == serde_json::json!(["array"]),
        items,
        merges: text("x-kubernetes-patch-strategy")
            .is_some_and(|strategy| strategy.split(',').any(|one| one == "merge")),
        keys: keys(schema).into(),
    }
}

/// Returns the names of the fields that identify the elements of a list when a patch is merged. They are in the
/// extension `x-kubernetes-list-map-keys` of the schema. If this extension is missing, `x-kubernetes-patch-merge-key`
/// contains one name.
fn keys(schema: &Value) -> Vec<Name> {
    let owned = |key: &Value| key.as_str().map(|key| Name::Owned(key.to_owned()));
    match &schema["x-kubernetes-list-map-keys"] {
        Value::Array(keys) => keys.iter().filter_map(owned).collect(),
        _ => owned(&schema["x-kubernetes-patch-merge-key"]).into_iter().collect(),
    }
}
