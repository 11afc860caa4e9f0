//! Checks the parts of a Composition's `spec` that declare an environment for Crossplane 1.11 to 1.17: the field
//! `environment`, and the patches in `patchSets` and `resources`.

use serde_json::Value;

use super::patches;
use super::place::Place;
use super::problem::Problem;
use super::reader::{Node, Reader};
use super::sources;

/// Checks the environment that a Composition declares for Crossplane 1.11 to 1.17. These versions can compute an
/// environment without Composition functions. Covers `spec.environment`, and the patches in `spec.patchSets` and
/// `spec.resources`.
pub(super) fn check(reader: &mut Reader, spec: &Node<'_>) {
    patches::note_writes(reader, spec);
    let sets = patch_sets(reader, spec);
    if let Some(environment) = reader.object(spec, "environment") {
        check_environment(reader, spec, &environment);
    }
    resources(reader, spec, &sets);
}

fn check_environment(reader: &mut Reader, spec: &Node<'_>, environment: &Node<'_>) {
    reader.known(environment, &["defaultData", "environmentConfigs", "patches", "policy"]);
    reader.object(environment, "defaultData");
    sources::check(reader, environment);
    sources::check_policy(reader, environment);
    patches::check(reader, environment, Place::Environment, &[]);
    let is_pipeline = spec.value.get("mode").and_then(Value::as_str) == Some("Pipeline");
    if let Some(patches) = environment.member("patches").filter(|_| is_pipeline) {
        let why = "ignored: in mode Pipeline Crossplane does not run the environment's patches";
        let help = "move them to environment.patches of the input of function-patch-and-transform";
        reader.report(Problem::ignored(patches.at, why).help(help));
    }
}

/// Checks the patch sets in the field `patchSets` of `parent`, and returns their names.
pub(super) fn patch_sets<'v>(reader: &mut Reader, parent: &Node<'v>) -> Vec<&'v str> {
    let sets = reader.objects(parent, "patchSets");
    let mut names: Vec<&str> = Vec::new();
    for set in &sets {
        reader.known(set, &["name", "patches"]);
        patches::check(reader, set, Place::Set, &[]);
        match reader.required(set, "name", "name is required") {
            Some((name, at)) if names.contains(&name) => {
                let what = format!("Duplicate value: {name:?}: the last patch set with this name wins");
                reader.report(Problem::new(super::problem::Topic::Structure, at, what).as_warning());
            }
            Some((name, _)) => names.push(name),
            None => {}
        }
    }
    names
}

/// Checks the patches of the composed resources in the field `resources` of `parent`. `sets` contains the names of the
/// patch sets to which the patches may refer.
pub(super) fn resources(reader: &mut Reader, parent: &Node<'_>, sets: &[&str]) {
    for resource in reader.objects(parent, "resources") {
        patches::check(reader, &resource, Place::Resource, sets);
    }
}
