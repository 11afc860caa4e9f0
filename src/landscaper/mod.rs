//! Landscaper: Installations with their Executions and DeployItems, Contexts and ComponentVersionOverwrites
//! (`landscaper.gardener.cloud/v1alpha1`), and the DryRunConfigurations that we add.
//!
//! What it really does was read in its source and executed; `tests/vectors/landscaper/` holds the cases. Names in here
//! are Landscaper's own.

pub mod annotations;
pub mod component_reference;
pub mod components;
pub mod context;
pub mod cron;
pub mod decode;
pub mod deployer;
pub mod dry_run;
pub mod duration;
pub mod execution;
pub mod export_path;
pub mod installation;
pub mod kinds;
mod namespace;
pub mod overwrites;
pub mod repository_context;
mod validation;

use crate::rule::{Definition, Mutator, Rule, Section};

/// The rules of this system, in the order of their ids.
pub fn rules() -> Vec<&'static Rule> {
    [deployer::RULES, dry_run::RULES, validation::RULES, overwrites::RULES].concat()
}

/// The mutators of this system.
pub fn mutators() -> Vec<&'static Mutator> {
    [overwrites::MUTATORS, dry_run::MUTATORS].concat()
}

/// The sections of the configuration file that this system reads.
pub fn sections() -> Vec<&'static Section> {
    vec![&deployer::configuration::SECTION, &dry_run::configuration::SECTION]
}

/// The kinds that this system adds.
pub fn definitions() -> Vec<&'static Definition> {
    dry_run::DEFINITIONS.to_vec()
}
