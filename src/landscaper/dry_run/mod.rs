//! Dry runs of Installations: Landscaper processes them as usual, but nothing is deployed.
//!
//! You annotate a root Installation with `landscaper.gardener.cloud/dry-run: "true"`. Every object below it inherits
//! the annotation, and the dry-run deployer processes its DeployItems. If DeployItems export values, the dry run reads
//! them from a DryRunConfiguration in the same namespace instead of from the objects on the target. Landscaper has no
//! support for dry runs: Portcullis implements the inheritance, the rules and the deployer.

pub mod configuration;
mod definition;
pub mod export;
pub mod fragment;
pub mod inheritance;
pub mod item;
pub mod owner_chain;
mod propagation;
pub(super) mod reading;
pub mod run;
pub(super) mod scopes;

use serde_json::Value;

use crate::admission::{Level, Metadata, Operation, Request};
use crate::landscaper::annotations::{CONFIGURATION_ANNOTATION, DRY_RUN_ANNOTATION};
use crate::rule::{Definition, Mutator};

/// The name of the mutator that copies dry-run annotations, as in the configuration file.
pub const MUTATOR: &str = "dry-run";
/// The mutators for dry runs.
pub static MUTATORS: &[&Mutator] = &[&propagation::MUTATOR];

/// The CustomResourceDefinitions that Portcullis adds for dry runs.
pub static DEFINITIONS: &[&Definition] = &[&definition::DRY_RUN_CONFIGURATIONS];

/// Returns `level`, the level of a finding. If the request is an update that does not change the relevant values of the
/// object, returns at most `warn`. `parts` returns the relevant values, for example the spec.
///
/// Landscaper and its deployers send such updates while they process an object. If these updates were denied, they
/// could not finish their work.
pub(super) fn unless_unchanged(
    request: &Request<'_>,
    level: Level,
    parts: impl Fn(&Value) -> Vec<Option<&Value>>,
) -> Level {
    let is_unchanged = request.operation == Operation::Update && parts(request.old_object()) == parts(request.object());
    if is_unchanged { level.min(Level::Warn) } else { level }
}

/// Returns the values of the two dry-run annotations of an object; `None` for a missing annotation.
pub(super) fn dry_run_annotations(object: &Value) -> Vec<Option<&Value>> {
    let annotation = |key| Metadata::of(object).annotations().and_then(|annotations| annotations.get(key));
    vec![annotation(DRY_RUN_ANNOTATION), annotation(CONFIGURATION_ANNOTATION)]
}

/// Returns the values of the two dry-run annotations of an object, followed by its spec; `None` for a missing value.
pub(super) fn annotations_and_spec(object: &Value) -> Vec<Option<&Value>> {
    let mut parts = dry_run_annotations(object);
    parts.push(object.get("spec"));
    parts
}

/// Reports whether Landscaper or a deployer is still processing an Installation or DeployItem. This is the case if
/// `jobID` and `jobIDFinished` in its status differ.
pub(super) fn is_running(object: &Value) -> bool {
    let status = |key: &str| object.get("status").and_then(|status| status.get(key)?.as_str()).unwrap_or_default();
    status("jobID") != status("jobIDFinished")
}
