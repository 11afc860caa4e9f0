//! Dry runs of Installations: Landscaper processes them as usual, but nothing is deployed.
//!
//! You annotate a root Installation with `landscaper.gardener.cloud/dry-run: "true"`. Every object below it inherits
//! the annotation, and the dry-run deployer processes its DeployItems. If DeployItems export values, the dry run reads
//! them from a DryRunConfiguration in the same namespace instead of from the objects on the target. Landscaper does not
//! know dry runs: Portcullis implements the inheritance, the rules and the deployer.

pub mod annotations;
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
pub mod fragment;
pub mod inheritance;
pub mod item;
pub mod owner_chain;
mod propagation;
mod reading;
pub mod run;
mod scopes;

use serde_json::Value;

use crate::admission::{Level, Operation, Request};
use crate::rule::{Definition, Mutator, Rule};

/// The dry-run annotation: an object is in dry run if its value is `"true"`.
pub const DRY_RUN_ANNOTATION: &str = "landscaper.gardener.cloud/dry-run";
/// The annotation that names the DryRunConfiguration, in the namespace of the object.
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

/// The CustomResourceDefinitions for dry runs.
pub static DEFINITIONS: &[&Definition] = &[&definition::DRY_RUN_CONFIGURATIONS];

const WRITES: &[Operation] = &[Operation::Create, Operation::Update];
const DELETION: &[Operation] = &[Operation::Delete];

/// Returns `level` if a request changes `parts` of an object, and at most a warning if it leaves them unchanged.
///
/// Landscaper and its deployers update these objects too, and a denied update ends their run.
fn unless_unchanged(request: &Request<'_>, level: Level, parts: impl Fn(&Value) -> Vec<Option<&Value>>) -> Level {
    let is_unchanged = request.operation == Operation::Update && parts(request.old_object()) == parts(request.object());
    if is_unchanged { level.min(Level::Warn) } else { level }
}

/// Returns the values of the dry-run annotations of an object.
fn dry_run_annotations(object: &Value) -> Vec<Option<&Value>> {
    let annotation = |key| object.get("metadata").and_then(|meta| meta.get("annotations")?.get(key));
    vec![annotation(DRY_RUN_ANNOTATION), annotation(CONFIGURATION_ANNOTATION)]
}

/// Returns the values of the dry-run annotations of an object, and its spec.
fn annotations_and_spec(object: &Value) -> Vec<Option<&Value>> {
    let mut parts = dry_run_annotations(object);
    parts.push(object.get("spec"));
    parts
}
