//! Writes the names of rules, families, mutators and sources of kustomize trees into
//! `charts/portcullis/values.schema.json`.
//!
//! With the schema, Helm rejects a configuration that names a rule that does not exist. Without it, a pod would fail to
//! start with such a configuration.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a tool of the repository")]

use std::fs;
use std::path::Path;

use portcullis::gate::Registry;
use serde_json::{Map, Value, json};

fn main() {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/portcullis/values.schema.json");
    print!("{}", updated(&fs::read_to_string(schema).unwrap()));
}

/// Returns `schema`, the text of the schema file, with new definitions of rules, families, mutators and sources. The
/// definitions contain the current names in the registry. Each definition is one line.
pub(crate) fn updated(schema: &str) -> String {
    let registry = Registry::standard();
    let mut rules: Vec<&str> = registry.families();
    rules.extend(registry.ids());
    let mutators: Vec<_> = registry.mutators().iter().map(|mutator| mutator.name).collect();
    let deliveries: Vec<_> = registry.deliveries().iter().map(|delivery| delivery.name).collect();
    let level = json!({"$ref": "#/definitions/level"});
    let definitions = [
        ("ruleOrFamily", json!({"enum": rules})),
        ("levels", values_by_name(&rules, &level)),
        ("mutators", values_by_name(&mutators, &json!({"enum": ["annotate", "apply", "off"]}))),
        ("deliveries", values_by_name(&deliveries, &level)),
    ];
    schema.lines().map(|line| replaced(line, &definitions) + "\n").collect()
}

/// Returns the JSON schema of a map whose keys are `names`, and whose values have the schema `value`. The schema does
/// not use `propertyNames`, because Helm reports errors of `propertyNames` without the path.
fn values_by_name(names: &[&str], value: &Value) -> Value {
    let properties: Map<_, _> = names.iter().map(|name| ((*name).to_owned(), value.clone())).collect();
    json!({"additionalProperties": false, "properties": properties, "type": "object"})
}

fn replaced(line: &str, definitions: &[(&str, Value)]) -> String {
    // Generated definitions are indented by four spaces. No other line has this form.
    let is_definition = |(name, _): &&(&str, Value)| line.starts_with(&format!("    \"{name}\": {{\""));
    match definitions.iter().find(is_definition) {
        Some((name, definition)) => format!("    \"{name}\": {definition},"),
        None => line.to_owned(),
    }
}
