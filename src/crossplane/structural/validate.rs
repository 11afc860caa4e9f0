//! Validates the `spec` of a composite against its schema, in the same way as the API server. CEL rules and formats are
//! not checked.

use std::fmt;

use serde_json::{Map, Value};

use super::store::{is_set, member};
use crate::admission::{FieldPath, json};
use crate::go::regexp;

/// A violation of a schema by a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The path of the invalid field.
    pub field: FieldPath,
    /// The reason why the field is invalid, in the style of the API server's messages.
    pub why: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.why)
    }
}

/// Returns all violations of a schema in `spec`.
pub(super) fn violations(spec: &Value, schema: &Value) -> Vec<Violation> {
    let mut found = Vec::new();
    check(spec, schema, &FieldPath::of(["spec"]), &mut found);
    found
}

/// Checks a value, and all values inside it, against a schema. Appends the violations to `found`. Each recursive call
/// uses a smaller part of the schema, so the recursion is at most as deep as the schema.
fn check(value: &Value, schema: &Value, at: &FieldPath, found: &mut Vec<Violation>) {
    let mut refuse = |why: String| found.push(Violation { field: at.clone(), why });
    if value.is_null() && is_set(schema, "nullable") {
        return;
    }
    if let Some(wanted) = wrong_type(value, schema) {
        return refuse(format!("must be of type {wanted}: {}", json::brief(value)));
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array).filter(|allowed| !allowed.contains(value)) {
        let allowed: Vec<_> = allowed.iter().map(json::brief).collect();
        refuse(format!("supported values: {}: {}", allowed.join(", "), json::brief(value)));
    }
    match value {
        Value::Number(number) => number_bounds(number.as_f64().unwrap_or_default(), schema, &mut refuse),
        Value::String(text) => text_bounds(text, schema, &mut refuse),
        Value::Array(items) => list_bounds(items, schema, &mut refuse),
        Value::Object(members) => object_bounds(members, schema, &mut refuse),
        _ => {}
    }
    combined(value, schema, at, found);
    match value {
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            items.iter().enumerate().for_each(|(index, item)| check(item, schema, &at.index(index), found));
        }
        Value::Object(members) => {
            for (name, value) in members {
                if let Some(Some(schema)) = member(schema, name) {
                    check(value, schema, &at.key(name), found);
                }
            }
        }
        _ => {}
    }
}

/// Returns the type that the schema requires, if the value does not have this type. `None` if the value has the right
/// type, or if the schema requires no type.
fn wrong_type<'s>(value: &Value, schema: &'s Value) -> Option<&'s str> {
    let is_whole = || value.as_f64().is_some_and(|number| number.fract() == 0.0);
    if is_set(schema, "x-kubernetes-int-or-string") {
        return (!(value.is_string() || is_whole())).then_some("integer or string");
    }
    let wanted = schema.get("type")?.as_str()?;
    let is_right = match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => is_whole(),
        "number" => value.is_number(),
        _ => true,
    };
    (!is_right).then_some(wanted)
}

fn limit(schema: &Value, key: &str) -> Option<f64> {
    schema.get(key).and_then(Value::as_f64)
}

fn number_bounds(number: f64, schema: &Value, refuse: &mut impl FnMut(String)) {
    if let Some(least) = limit(schema, "minimum") {
        let is_below = if is_set(schema, "exclusiveMinimum") { number <= least } else { number < least };
        if is_below {
            refuse(format!("must be at least {least}: {number}"));
        }
    }
    if let Some(most) = limit(schema, "maximum") {
        let is_above = if is_set(schema, "exclusiveMaximum") { number >= most } else { number > most };
        if is_above {
            refuse(format!("must be at most {most}: {number}"));
        }
    }
    if let Some(factor) = limit(schema, "multipleOf").filter(|factor| *factor != 0.0)
        && (number / factor).fract() != 0.0
    {
        refuse(format!("must be a multiple of {factor}: {number}"));
    }
}

/// Calls `refuse` with a message if `size`, such as the length of a string, is outside the bounds of the schema. `keys`
/// are the keywords of the lower and the upper bound, such as `minLength` and `maxLength`. `what` is the unit of the
/// size.
fn size(size: usize, schema: &Value, keys: [&str; 2], what: &str, refuse: &mut impl FnMut(String)) {
    let bound = |key| schema.get(key).and_then(Value::as_u64);
    let [least, most] = keys.map(bound);
    if let Some(least) = least.filter(|least| (size as u64) < *least) {
        refuse(format!("must have at least {least} {what}, and has {size}"));
    }
    if let Some(most) = most.filter(|most| size as u64 > *most) {
        refuse(format!("must have at most {most} {what}, and has {size}"));
    }
}

fn text_bounds(text: &str, schema: &Value, refuse: &mut impl FnMut(String)) {
    size(text.chars().count(), schema, ["minLength", "maxLength"], "characters", refuse);
    let pattern = schema.get("pattern").and_then(Value::as_str);
    if let Some(pattern) = pattern.filter(|pattern| !regexp::compile(pattern).is_ok_and(|found| found.is_match(text))) {
        refuse(format!("must match {pattern:?}: {}", json::brief(&text.into())));
    }
}

fn list_bounds(items: &[Value], schema: &Value, refuse: &mut impl FnMut(String)) {
    size(items.len(), schema, ["minItems", "maxItems"], "items", refuse);
    let keys: Vec<&str> = match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => Vec::new(),
        Some("map") => {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            keys.into_iter().flatten().filter_map(Value::as_str).collect()
        }
        _ if is_set(schema, "uniqueItems") => Vec::new(),
        _ => return,
    };
    let key = |item: &Value| match keys.as_slice() {
        [] => item.to_string(),
        keys => keys.iter().map(|key| item.get(key).map(Value::to_string).unwrap_or_default()).collect(),
    };
    let mut seen = std::collections::BTreeSet::new();
    if let Some(again) = items.iter().find(|item| !seen.insert(key(item))) {
        refuse(format!("duplicate value: {}", json::brief(again)));
    }
}

fn object_bounds(members: &Map<String, Value>, schema: &Value, refuse: &mut impl FnMut(String)) {
    size(members.len(), schema, ["minProperties", "maxProperties"], "members", refuse);
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    for name in required.filter_map(Value::as_str).filter(|name| !members.contains_key(*name)) {
        refuse(format!("{name} is required"));
    }
}

/// Checks a value against `allOf`, `anyOf`, `oneOf` and `not` of a schema. Appends the violations to `found`.
fn combined(value: &Value, schema: &Value, at: &FieldPath, found: &mut Vec<Violation>) {
    let parts = |key| schema.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let holds = |part: &Value| {
        let mut found = Vec::new();
        check(value, part, at, &mut found);
        found.is_empty()
    };
    parts("allOf").iter().for_each(|part| check(value, part, at, found));
    let mut refuse = |why: &str| found.push(Violation { field: at.clone(), why: why.to_owned() });
    if !parts("anyOf").is_empty() && !parts("anyOf").iter().any(holds) {
        refuse("must match at least one of the schemas in anyOf");
    }
    let count = parts("oneOf").iter().filter(|part| holds(part)).count();
    if !parts("oneOf").is_empty() && count != 1 {
        refuse("must match exactly one of the schemas in oneOf");
    }
    if schema.get("not").is_some_and(holds) {
        refuse("must not match the schema in not");
    }
}
