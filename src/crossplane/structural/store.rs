//! Prunes unknown fields of composites and sets defaults, as the API server does before it stores a custom resource.
//!
//! Source: `pkg/apiserver/schema` in `k8s.io/apiextensions-apiserver`.

use serde_json::{Map, Value};

/// Converts a value as the API server does before storing it: prunes unknown fields, sets defaults and drops nulls.
pub(super) fn store(value: &mut Value, schema: &Value) {
    prune(value, Some(schema));
    fill_in(value, schema);
    drop_nulls(value, schema);
}

pub(super) fn preserves(schema: &Value) -> bool {
    is_set(schema, "x-kubernetes-preserve-unknown-fields")
}

pub(super) fn is_set(schema: &Value, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}

/// Returns the schema of the field `name` of an object. The outer option is `None` if `schema` does not declare this
/// field. The inner option is `None` if `schema` allows any value for the field.
pub(super) fn member<'s>(schema: &'s Value, name: &str) -> Option<Option<&'s Value>> {
    if let Some(found) = schema.get("properties").and_then(|properties| properties.get(name)) {
        return Some(Some(found));
    }
    let is_embedded = is_set(schema, "x-kubernetes-embedded-resource");
    if is_embedded && ["apiVersion", "kind", "metadata"].contains(&name) {
        return Some(None);
    }
    match schema.get("additionalProperties") {
        Some(Value::Bool(true)) => Some(None),
        Some(Value::Object(_)) => Some(schema.get("additionalProperties")),
        _ => None,
    }
}

/// Removes the fields that the schema does not declare. The recursion depth is the depth of the value.
fn prune(value: &mut Value, schema: Option<&Value>) {
    match value {
        Value::Object(members) => prune_members(members, schema),
        Value::Array(items) => {
            let schema = schema.and_then(|schema| schema.get("items"));
            items.iter_mut().for_each(|item| prune(item, schema));
        }
        _ => {}
    }
}

fn prune_members(members: &mut Map<String, Value>, schema: Option<&Value>) {
    let Some(schema) = schema else { return members.clear() };
    let keeps = preserves(schema);
    members.retain(|name, value| match member(schema, name) {
        Some(Some(schema)) => {
            prune(value, Some(schema));
            true
        }
        // The metadata of an embedded object has a schema of its own, which is not evaluated here.
        Some(None) if is_set(schema, "x-kubernetes-embedded-resource") => true,
        Some(None) => {
            if !keeps {
                prune(value, None);
            }
            true
        }
        None => keeps,
    });
}

fn fill_in(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(members) => {
            let declared = schema.get("properties").and_then(Value::as_object);
            for (name, schema) in declared.into_iter().flatten() {
                let Some(default) = schema.get("default") else { continue };
                if members.get(name).is_none_or(|value| is_forbidden_null(value, schema)) {
                    members.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in members.iter_mut() {
                if let Some(Some(schema)) = member(schema, name) {
                    fill_in(value, schema);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            items.iter_mut().for_each(|item| fill_in(item, schema));
        }
        _ => {}
    }
}

/// Removes null members that the schema does not allow. Keeps null elements of lists, which the validation rejects
/// later.
fn drop_nulls(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(members) => members.retain(|name, value| {
            let Some(Some(schema)) = member(schema, name) else { return true };
            drop_nulls(value, schema);
            !is_forbidden_null(value, schema)
        }),
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            items.iter_mut().for_each(|item| drop_nulls(item, schema));
        }
        _ => {}
    }
}

/// Returns whether a value is null and the schema forbids null.
fn is_forbidden_null(value: &Value, schema: &Value) -> bool {
    let is_typed = schema.get("type").is_some() || is_set(schema, "x-kubernetes-int-or-string");
    value.is_null() && is_typed && !is_set(schema, "nullable")
}
