//! The rules and mutators for Landscaper, and the code that they share. They apply to Installations, Executions,
//! DeployItems, Targets, Contexts and ComponentVersionOverwrites (`landscaper.gardener.cloud/v1alpha1`), and to
//! DryRunConfigurations, a kind that Portcullis adds.
//!
//! The behavior follows Landscaper's source code. Results of running that code are recorded in
//! `tests/vectors/landscaper/`. Names of kinds, fields and phases are those of Landscaper.

pub mod annotations;
pub mod api;
pub mod component_reference;
pub mod components;
pub mod context;
pub mod cron;
pub mod decode;
mod deletion;
pub mod deployer;
pub mod dry_run;
pub mod dry_run_annotations;
pub mod duration;
pub mod execution;
pub mod export_path;
pub mod installation;
pub mod kinds;
pub mod overwrites;
pub mod owner;
pub mod repository_context;
mod rules;
pub mod substitution;
mod validation;

use crate::rule::{Definition, Mutator, Rule};

/// Returns all rules for objects of Landscaper, in the order of their ids.
pub fn rules() -> Vec<&'static Rule> {
    rules::RULES.to_vec()
}

/// Returns all mutators for objects of Landscaper.
pub fn mutators() -> Vec<&'static Mutator> {
    [overwrites::MUTATORS, dry_run::MUTATORS].concat()
}

/// Returns the CustomResourceDefinitions that Portcullis adds to the API group of Landscaper, such as the one of
/// DryRunConfigurations. `portcullis manifests` prints them.
pub fn definitions() -> Vec<&'static Definition> {
    dry_run::DEFINITIONS.to_vec()
}
