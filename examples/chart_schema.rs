//! Writes the names of rules, families, mutators and sources of trees into `charts/portcullis/values.schema.json`.
//!
//! Helm then rejects a configuration that names a rule which does not exist, before a pod fails to start with it.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a tool of the repository")]

use std::fs;
use std::path::Path;

use portcullis::gate::Registry;
use serde_json::json;

fn main() {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/portcullis/values.schema.json");
    print!("{}", updated(&fs::read_to_string(schema).unwrap()));
}

/// Returns the schema with the generated definitions, each of which is one line, replaced.
pub(crate) fn updated(schema: &str) -> String {
    let registry = Registry::standard();
    let mut rules: Vec<&str> = registry.families();
    rules.extend(registry.ids());
    let mutators = registry.mutators().iter().map(|mutator| mutator.name).collect();
    let deliveries = registry.deliveries().iter().map(|delivery| delivery.name).collect();
    let definitions = [("ruleOrFamily", rules), ("mutator", mutators), ("delivery", deliveries)];
    schema.lines().map(|line| replaced(line, &definitions) + "\n").collect()
}

fn replaced(line: &str, definitions: &[(&str, Vec<&str>)]) -> String {
    let named = |(name, _): &&(&str, Vec<&str>)| line.trim_start().starts_with(&format!("\"{name}\": {{\"enum\""));
    match definitions.iter().find(named) {
        Some((name, values)) => format!("    \"{name}\": {},", json!({"enum": values})),
        None => line.to_owned(),
    }
}
