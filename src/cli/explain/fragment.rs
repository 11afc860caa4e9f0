//! Generates YAML templates of the fragments that are missing in a DryRunConfiguration. A fragment is a part of a
//! Kubernetes object, from which a Landscaper dry run reads the values of exports.

use serde_json::{Value, json};

use crate::landscaper::dry_run::export::Export;
use crate::landscaper::dry_run::fragment::Identity;
use crate::landscaper::export_path::{construct, merge};

/// Returns a template of the object `identity` for the user to add to a DryRunConfiguration. The template contains
/// apiVersion, kind, namespace and name of the object, and a placeholder value for each field in `paths`. Ignores paths
/// that contain anything other than field names, such as filters.
pub(super) fn skeleton<'p>(identity: &Identity, paths: impl Iterator<Item = &'p str>) -> Value {
    let mut fragment = identity.to_fragment();
    for path in paths {
        if let Ok(field) = construct(path, &json!("to be filled in")) {
            merge(&mut fragment, field);
        }
    }
    fragment
}

/// Returns the JSONPath that an export applies to the object `identity`. For the object in `fromResource`, this is the
/// field `jsonPath` of the export. For the object to which `fromObjectRef` refers, it is `fromObjectRef.jsonPath`.
pub(super) fn path_in<'e>(export: &'e Export, identity: &Identity) -> &'e str {
    match &export.from_object_ref {
        Some(next) if export.from_resource.as_ref() != Some(identity) => &next.json_path,
        _ => &export.json_path,
    }
}

/// Formats objects as a YAML list. The list is indented so that the user can paste it below `spec.exports` of a
/// DryRunConfiguration.
pub(super) fn yaml(objects: &[Value]) -> String {
    let mut text = String::new();
    for object in objects {
        let mut lines = String::new();
        members(object, 6, &mut lines);
        text.push_str("    - ");
        text.push_str(lines.trim_start());
    }
    text
}

fn members(object: &Value, indent: usize, text: &mut String) {
    // The depth of the recursion is that of a field path, which is bounded.
    for (key, value) in object.as_object().into_iter().flatten() {
        let is_plain = key.starts_with(|c: char| c.is_ascii_alphabetic())
            && key.chars().all(|c| c.is_ascii_alphanumeric() || "-._/".contains(c))
            && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&key.to_lowercase().as_str());
        let key = if is_plain { key.clone() } else { json!(key).to_string() };
        text.push_str(&format!("{:indent$}{key}:", ""));
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                text.push('\n');
                members(value, indent + 2, text);
            }
            other => text.push_str(&format!(" {other}\n")),
        }
    }
}
