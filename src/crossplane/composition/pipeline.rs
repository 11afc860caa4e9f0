//! Checks the inputs of two functions in the pipeline of a Composition: function-environment-configs and
//! function-patch-and-transform.
//!
//! Without these checks, mistakes in the inputs appear only at the first reconcile, when Crossplane calls the
//! functions. function-environment-configs does not validate its input, so a missing field can cause a nil pointer
//! dereference.

use serde_json::Value;

use super::native;
use super::patches;
use super::place::Place;
use super::problem::Problem;
use super::reader::{Node, Reader};
use super::sources;

/// API group of the input of function-environment-configs.
pub(super) const ENVIRONMENT_CONFIGS: &str = "environmentconfigs.fn.crossplane.io";
/// API group of the input of function-patch-and-transform.
pub(super) const PATCH_AND_TRANSFORM: &str = "pt.fn.crossplane.io";

/// Checks the inputs of function-environment-configs and function-patch-and-transform in the pipeline of a Composition.
/// `spec` is the `spec` of the Composition.
pub(super) fn check(reader: &mut Reader, spec: &Node<'_>) {
    for step in reader.objects(spec, "pipeline") {
        let input = step.member("input");
        if !input.as_ref().is_some_and(|input| [ENVIRONMENT_CONFIGS, PATCH_AND_TRANSFORM].contains(&group(input.value)))
        {
            // Another function may write anything into the environment.
            reader.declared = None;
        }
        let Some(input) = input else { continue };
        match group(input.value) {
            ENVIRONMENT_CONFIGS => check_input(reader, &input),
            PATCH_AND_TRANSFORM => check_resources(reader, &input),
            _ => {}
        }
    }
}

/// Returns the API group in the `apiVersion` of a function's input; empty if there is none.
pub(super) fn group(input: &Value) -> &str {
    let api_version = input.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    api_version.split_once('/').map_or("", |(group, _)| group)
}

fn check_input(reader: &mut Reader, input: &Node<'_>) {
    reader.known(input, &["apiVersion", "kind", "metadata", "spec"]);
    is_of(reader, input, "Input");
    let Some(spec) = reader.object(input, "spec") else {
        if input.member("spec").is_none() {
            let problem = Problem::required(input.at.key("spec"), "without it no EnvironmentConfig is selected");
            reader.report(problem);
        }
        return;
    };
    reader.known(&spec, &["defaultData", "environmentConfigs", "policy"]);
    sources::check(reader, &spec);
    sources::check_policy(reader, &spec);
    let default = reader.object(&spec, "defaultData");
    let is_alone =
        reader.member(&spec, "environmentConfigs").is_none_or(|list| list.value.as_array().is_some_and(Vec::is_empty));
    if let Some(default) = default.filter(|_| is_alone) {
        let why = "ignored: function-environment-configs does nothing without environmentConfigs";
        reader.report(Problem::ignored(default.at, why).help("select at least one EnvironmentConfig"));
    }
}

fn check_resources(reader: &mut Reader, input: &Node<'_>) {
    reader.known(input, &["apiVersion", "kind", "metadata", "patchSets", "environment", "resources"]);
    is_of(reader, input, "Resources");
    patches::note_writes(reader, input);
    let sets = native::patch_sets(reader, input);
    if let Some(environment) = reader.object(input, "environment") {
        reader.known(&environment, &["patches", "resources", "patchSets"]);
        for field in ["resources", "patchSets"] {
            if let Some(found) = reader.member(&environment, field) {
                let why = format!("ignored: {field} belongs beside environment, not in it");
                reader.report(Problem::ignored(found.at, why).help(format!("move it up to {}.{field}", input.at)));
            }
        }
        patches::check(reader, &environment, Place::Environment, &[]);
    }
    let is_empty = |node: Option<Node<'_>>| node.is_none_or(|list| list.value.as_array().is_some_and(Vec::is_empty));
    let environment = reader.member(input, "environment").and_then(|inner| reader.member(&inner, "patches"));
    if is_empty(reader.member(input, "resources")) && is_empty(environment) {
        let detail = "resources or environment patches are required";
        reader.report(Problem::required(input.at.key("resources"), detail));
    }
    for resource in reader.objects(input, "resources") {
        if reader.required(&resource, "name", "name is required").is_some_and(|(name, _)| name.is_empty()) {
            reader.report(Problem::required(resource.at.key("name"), "name is required"));
        }
        reader.known(&resource, &["name", "base", "patches", "connectionDetails", "readinessChecks"]);
    }
    native::resources(reader, input, &sets);
}

fn is_of(reader: &mut Reader, input: &Node<'_>, kind: &str) {
    // The functions ignore the kind.
    reader.lenient_choice(input, "kind", &[kind], kind);
}
