//! Computes how an API server stores a custom object. The API server prunes the object and sets defaults, according to
//! the structural schema of its kind.
//!
//! The rules are those in the Kubernetes documentation of CustomResourceDefinitions. An end-to-end test compares the
//! examples below with a real API server.

use serde_json::{Map, Value, json};

/// Returns the object as an API server stores it. `object` comes from a request or from a webhook.
pub fn stored(object: &Value, schema: &Value) -> Value {
    let mut object = object.clone();
    prune(&mut object, Some(schema), true);
    default(&mut object, schema);
    object
}

/// The fields of an object that are never pruned, although its structural schema does not contain them. Embedded
/// resources have these fields too.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(format!("x-kubernetes-{name}")).and_then(Value::as_bool).unwrap_or_default()
}

fn property<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    schema.get("properties")?.get(name)
}

/// Returns the schema in `additionalProperties`. This schema applies to members that `properties` does not contain.
/// `None` if `additionalProperties` is missing or a boolean.
fn additional(schema: &Value) -> Option<&Value> {
    schema.get("additionalProperties").filter(|additional| additional.is_object())
}

/// Removes the fields that the schema does not contain.
fn prune(value: &mut Value, schema: Option<&Value>, is_root: bool) {
    match value {
        Value::Object(members) => prune_object(members, schema, is_root),
        Value::Array(elements) => {
            let items = schema.and_then(|schema| schema.get("items"));
            // If a list preserves unknown fields, its elements are pruned only if the schema has `items`.
            let preserved = schema.filter(|schema| flag(schema, "preserve-unknown-fields"));
            match (items, preserved) {
                (None, Some(_)) => {}
                (items, _) => elements.iter_mut().for_each(|element| prune(element, items, false)),
            }
        }
        _ => {}
    }
}

fn prune_object(members: &mut Map<String, Value>, schema: Option<&Value>, is_root: bool) {
    let Some(schema) = schema else { return members.clear() };
    let has_meta = is_root || flag(schema, "embedded-resource");
    let preserves = flag(schema, "preserve-unknown-fields");
    let has_additional = schema.get("additionalProperties").is_some_and(|additional| *additional != json!(false));
    members.retain(|key, value| {
        if has_meta && META.contains(&key.as_str()) {
            return true;
        }
        match (property(schema, key), additional(schema)) {
            (Some(schema), _) | (None, Some(schema)) => prune(value, Some(schema), false),
            (None, None) if preserves => {}
            (None, None) if has_additional => prune(value, None, false),
            (None, None) => return false,
        }
        true
    });
}

/// Sets missing fields to their defaults. A field with the value null counts as missing, unless it is `nullable`.
fn default(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(members) => {
            members.retain(|key, value| {
                let schema = property(schema, key).or_else(|| additional(schema));
                !(value.is_null() && schema.is_some_and(|schema| !is_nullable(schema)))
            });
            for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
                if let Some(default) = property.get("default").filter(|_| !members.contains_key(name)) {
                    members.insert(name.clone(), default.clone());
                }
            }
            for (key, value) in members {
                if let Some(schema) = property(schema, key).or_else(|| additional(schema)) {
                    default(value, schema);
                }
            }
        }
        Value::Array(elements) => {
            if let Some(items) = schema.get("items") {
                elements.iter_mut().for_each(|element| default(element, items));
            }
        }
        _ => {}
    }
}

fn is_nullable(schema: &Value) -> bool {
    schema.get("nullable").and_then(Value::as_bool).unwrap_or_default()
}

/// Returns the structural schema for [`examples`].
pub fn example_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"spec": {
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "size": {"type": "integer", "default": 3},
                "nothing": {"type": "string", "nullable": true},
                "network": {
                    "type": "object",
                    "default": {},
                    "properties": {"vpc": {"type": "string", "default": "main"}, "id": {"type": "string"}},
                },
                "optional": {"type": "object", "properties": {"port": {"type": "integer", "default": 80}}},
                "list": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}, "weight": {"type": "integer", "default": 1}},
                    },
                },
                "tags": {"type": "object", "additionalProperties": {"type": "string"}},
                "pools": {
                    "type": "object",
                    "additionalProperties": {
                        "type": "object",
                        "properties": {"size": {"type": "integer", "default": 1}},
                    },
                },
                "free": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": true,
                    "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}},
                },
                "template": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": true,
                    "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
                },
                "any": {"x-kubernetes-preserve-unknown-fields": true},
            },
        }},
    })
}

/// Returns pairs of specs: the spec that a user sends, and the spec that the API server stores. Their schema is
/// [`example_schema`].
pub fn examples() -> Vec<(Value, Value)> {
    let with_defaults = |mut spec: Value| {
        spec.as_object_mut().unwrap().entry("size").or_insert(json!(3));
        spec.as_object_mut().unwrap().entry("network").or_insert(json!({"vpc": "main"}));
        spec
    };
    [
        (json!({}), json!({})),
        (json!({"unknown": 1, "text": "a"}), json!({"text": "a"})),
        (json!({"size": null, "text": null, "nothing": null}), json!({"nothing": null})),
        (json!({"network": {"id": "x", "other": 1}}), json!({"network": {"id": "x", "vpc": "main"}})),
        (json!({"network": null}), json!({})),
        (json!({"optional": {}}), json!({"optional": {"port": 80}})),
        (
            json!({"list": [{"name": "a", "more": 1}, {"weight": null}]}),
            json!({"list": [{"name": "a", "weight": 1}, {"weight": 1}]}),
        ),
        (json!({"tags": {"a": "b", "c": null}}), json!({"tags": {"a": "b"}})),
        (json!({"pools": {"a": {"other": 1}, "b": {}}}), json!({"pools": {"a": {"size": 1}, "b": {"size": 1}}})),
        (
            json!({"free": {"known": {"a": "x", "b": 1}, "unknown": {"c": [{"d": 1}]}}}),
            json!({"free": {"known": {"a": "x"}, "unknown": {"c": [{"d": 1}]}}}),
        ),
        (
            json!({"template": {"apiVersion": "v1", "kind": "A", "metadata": {"name": "b"}, "spec": {"a": "x", "b": 1},
                                "other": 1}}),
            json!({"template": {"apiVersion": "v1", "kind": "A", "metadata": {"name": "b"}, "spec": {"a": "x"}}}),
        ),
        (json!({"any": {"a": [{"b": null}]}}), json!({"any": {"a": [{"b": null}]}})),
        (json!({"any": [1, {"b": 2}]}), json!({"any": [1, {"b": 2}]})),
    ]
    .into_iter()
    .map(|(sent, stored)| (sent, with_defaults(stored)))
    .collect()
}
