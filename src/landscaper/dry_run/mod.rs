//! Dry runs: Installations that Landscaper processes as usual, but whose DeployItems the dry-run deployer processes.
//!
//! A root Installation is annotated with `landscaper.gardener.cloud/dry-run: "true"`; everything below it follows. Where
//! DeployItems export values, a DryRunConfiguration in the same namespace stands in for the objects on the target.
//! Landscaper itself knows none of this: propagation, the checks and the run are ours.

pub mod configuration;
mod definition;
mod dr001;
mod dr002;
mod dr003;
mod dr004;
mod dr005;
mod dr006;
mod dr007;
mod dr008;
mod dr009;
mod dr010;
mod dr011;
mod dr012;
pub mod export;
pub mod following;
pub mod fragment;
pub mod item;
pub mod lineage;
pub mod mark;
mod propagation;
mod reading;
pub mod run;
mod scopes;

use serde_json::Value;

use crate::admission::{Level, Operation, Request};
use crate::rule::{Definition, Mutator, Rule};

/// Says whether an object is in dry run: only `"true"` does.
pub const DRY_RUN_ANNOTATION: &str = "landscaper.gardener.cloud/dry-run";
/// Names the DryRunConfiguration, in the same namespace.
pub const CONFIGURATION_ANNOTATION: &str = "landscaper.gardener.cloud/dry-run-configuration";

/// The rules about dry runs.
pub static RULES: &[&Rule] = &[
    &dr001::RULE,
    &dr002::RULE,
    &dr003::RULE,
    &dr004::RULE,
    &dr005::RULE,
    &dr006::RULE,
    &dr007::RULE,
    &dr008::RULE,
    &dr009::RULE,
    &dr010::RULE,
    &dr011::RULE,
    &dr012::RULE,
];

/// The name of the mutator for dry runs.
pub const MUTATOR: &str = "dry-run";
/// The mutators for dry runs.
pub static MUTATORS: &[&Mutator] = &[&propagation::MUTATOR];

/// The kinds for dry runs.
pub static DEFINITIONS: &[&Definition] = &[&definition::DRY_RUN_CONFIGURATIONS];

const WRITES: &[Operation] = &[Operation::Create, Operation::Update];
const DELETION: &[Operation] = &[Operation::Delete];

/// The level of a finding in what a request changes, and a warning for what was there before: Landscaper and its deployers
/// write these objects too, and take a refusal for the end of the run.
fn unless_unchanged(request: &Request<'_>, level: Level, parts: impl Fn(&Value) -> Vec<Option<&Value>>) -> Level {
    let is_unchanged = request.operation == Operation::Update && parts(request.old_object()) == parts(request.object());
    if is_unchanged { level.min(Level::Warn) } else { level }
}

/// The annotations about dry runs.
fn marks(object: &Value) -> Vec<Option<&Value>> {
    let annotation = |key| object.get("metadata").and_then(|meta| meta.get("annotations")?.get(key));
    vec![annotation(DRY_RUN_ANNOTATION), annotation(CONFIGURATION_ANNOTATION)]
}

/// The annotations about dry runs, and what is to be done.
fn marks_and_spec(object: &Value) -> Vec<Option<&Value>> {
    let mut parts = marks(object);
    parts.push(object.get("spec"));
    parts
}
