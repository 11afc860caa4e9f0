//! Converts numbers and booleans in a kustomization file to strings, as Flux does. A value is converted only if its
//! field must be a string.
//!
//! Source: `convertToJSONableObject` in sigs.k8s.io/yaml. fluxcd/pkg's `kustomize/kustomize_generator.go` decodes the
//! kustomization file with this function. The function does not convert the fields of an embedded Go struct. For such a
//! field, it looks at the type of the embedded struct, which is not a string.

use serde_json::{Map, Number, Value};

use super::schema::{Fields, Type};

/// The fields that Go promotes from embedded structs. Each tuple contains the name of the embedding struct and the
/// names of the fields.
const PROMOTED: [(&str, &[&str]); 7] = [
    ("Kustomization", &["kind", "apiVersion"]),
    ("FieldSpec", &["group", "version", "kind"]),
    ("Selector", &["group", "version", "kind", "name", "namespace"]),
    ("ReplacementField", &["source", "targets", "sourceValue"]),
    ("Target", &["group", "version", "kind"]),
    ("ConfigMapArgs", &["namespace", "name", "behavior", "literals", "files", "envs", "env", "options"]),
    ("SecretArgs", &["namespace", "name", "behavior", "literals", "files", "envs", "env", "options"]),
];

/// Converts numbers and booleans to strings in the fields where Flux's decoder does the same.
pub(super) fn relaxed(value: &Value, fields: &'static Fields) -> Value {
    let Value::Object(members) = value else { return value.clone() };
    let member = |(key, value): (&String, &Value)| {
        let converted = match fields.find(key) {
            Some((name, ty)) if !is_promoted(fields, name) => converted(value, ty),
            _ => value.clone(),
        };
        (key.clone(), converted)
    };
    Value::Object(members.iter().map(member).collect::<Map<_, _>>())
}

fn is_promoted(fields: &Fields, name: &str) -> bool {
    PROMOTED.iter().any(|(of, names)| *of == fields.name && names.contains(&name))
}

fn converted(value: &Value, ty: &'static Type) -> Value {
    match (ty, value) {
        (Type::Text, value) => text(value),
        (Type::Texts, Value::Object(members)) => {
            Value::Object(members.iter().map(|(key, value)| (key.clone(), text(value))).collect())
        }
        (Type::List(item), Value::Array(items)) => items.iter().map(|value| converted(value, item)).collect(),
        (Type::Fields(fields), _) => relaxed(value, fields),
        _ => value.clone(),
    }
}

fn text(value: &Value) -> Value {
    match value {
        Value::Bool(flag) => flag.to_string().into(),
        Value::Number(number) => number_text(number).into(),
        other => other.clone(),
    }
}

/// Formats a number like Go: integers in full, others like `strconv.FormatFloat(…, 'g', -1, 64)`.
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
        assert_eq!(relaxed(&file, &KUSTOMIZATION), expected);
    }

    #[test]
    fn leaves_promoted_fields_as_they_are() {
        let file = json!({"kind": 7, "configMapGenerator": [{"name": 7}], "patches": [{"target": {"name": 7}}]});
        assert_eq!(relaxed(&file, &KUSTOMIZATION), file);
    }
}
