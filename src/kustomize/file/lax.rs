//! Converts numbers and booleans in a kustomization file to strings, as Flux does. A value is converted only if its
//! field must be a string.
//!
//! Source: `convertToJSONableObject` in sigs.k8s.io/yaml. fluxcd/pkg's `kustomize/kustomize_generator.go` decodes the
//! kustomization file with this function. The function does not convert the fields of an embedded Go struct, because it
//! checks the type of the embedded struct instead of the type of the field.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use super::schema::{Fields, Type};

/// The fields that Go promotes from embedded structs. Flux does not convert numbers and booleans in these fields to
/// strings. Each tuple contains the name of the embedding struct and the names of the fields.
const PROMOTED: [(&str, &[&str]); 7] = [
    ("Kustomization", &["kind", "apiVersion"]),
    ("FieldSpec", &["group", "version", "kind"]),
    ("Selector", &["group", "version", "kind", "name", "namespace"]),
    ("ReplacementField", &["source", "targets", "sourceValue"]),
    ("Target", &["group", "version", "kind"]),
    ("ConfigMapArgs", &["namespace", "name", "behavior", "literals", "files", "envs", "env", "options"]),
    ("SecretArgs", &["namespace", "name", "behavior", "literals", "files", "envs", "env", "options"]),
];

/// Converts numbers and booleans in `value` to strings, in the fields where Flux's decoder does the same. `fields` are
/// the fields of the Go struct into which Flux decodes the value.
pub(super) fn relaxed<'v>(value: &'v Value, fields: &'static Fields) -> Cow<'v, Value> {
    let member = |key: &str, value: &'v Value| match fields.find(key) {
        Some((name, ty)) if !is_promoted(fields, name) => converted(value, ty),
        _ => Cow::Borrowed(value),
    };
    match value {
        Value::Object(members) => with_members(value, members, member),
        _ => Cow::Borrowed(value),
    }
}

/// Applies `convert` to each entry of the mapping `value`, and returns the resulting mapping. `members` contains the
/// entries of `value`.
fn with_members<'v>(
    value: &'v Value,
    members: &'v Map<String, Value>,
    convert: impl Fn(&str, &'v Value) -> Cow<'v, Value>,
) -> Cow<'v, Value> {
    let changed = members.iter().filter_map(|(key, value)| match convert(key, value) {
        Cow::Owned(new) => Some((key.clone(), new)),
        Cow::Borrowed(_) => None,
    });
    let mut changed = changed.peekable();
    if changed.peek().is_none() {
        return Cow::Borrowed(value);
    }
    let mut members = members.clone();
    members.extend(changed);
    Cow::Owned(Value::Object(members))
}

fn is_promoted(fields: &Fields, name: &str) -> bool {
    PROMOTED.iter().any(|(of, names)| *of == fields.name && names.contains(&name))
}

fn converted<'v>(value: &'v Value, ty: &'static Type) -> Cow<'v, Value> {
    match (ty, value) {
        (Type::Text, value) => text(value),
        (Type::Texts, Value::Object(members)) => with_members(value, members, |_, value| text(value)),
        (Type::List(item), Value::Array(items)) => {
            let items: Vec<_> = items.iter().map(|value| converted(value, item)).collect();
            match items.iter().any(|item| matches!(item, Cow::Owned(_))) {
                true => Cow::Owned(items.into_iter().map(Cow::into_owned).collect()),
                false => Cow::Borrowed(value),
            }
        }
        (Type::Fields(fields), _) => relaxed(value, fields),
        _ => Cow::Borrowed(value),
    }
}

fn text(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::Bool(flag) => Cow::Owned(flag.to_string().into()),
        Value::Number(number) => Cow::Owned(number_text(number).into()),
        other => Cow::Borrowed(other),
    }
}

/// Formats a number as Go does: integers in full, other numbers as `strconv.FormatFloat(…, 'g', -1, 64)` does.
fn number_text(number: &Number) -> String {
    if number.is_i64() || number.is_u64() {
        return number.to_string();
    }
    let shortest = format!("{:e}", number.as_f64().unwrap_or_default());
    let Some((digits, exponent)) = shortest.split_once('e') else { return shortest };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    // Go's shortest form has an exponent for numbers of more than 21 digits, and for fractions below 0.0001
    if (-4..21).contains(&exponent) {
        return number.as_f64().unwrap_or_default().to_string();
    }
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kustomize::file::schema::KUSTOMIZATION;

    #[test]
    fn converts_scalars_where_the_field_is_a_string() {
        let file = json!({"namePrefix": 7, "resources": [7, true], "commonLabels": {"a": 1.5},
                          "images": [{"name": "x", "newTag": 1.25}], "labels": [{"pairs": {"a": true}}]});
        let expected = json!({"namePrefix": "7", "resources": ["7", "true"], "commonLabels": {"a": "1.5"},
                              "images": [{"name": "x", "newTag": "1.25"}], "labels": [{"pairs": {"a": "true"}}]});
        assert_eq!(*relaxed(&file, &KUSTOMIZATION), expected);
    }

    #[test]
    fn leaves_promoted_fields_as_they_are() {
        let file = json!({"kind": 7, "configMapGenerator": [{"name": 7}], "patches": [{"target": {"name": 7}}]});
        assert_eq!(*relaxed(&file, &KUSTOMIZATION), file);
    }
}
