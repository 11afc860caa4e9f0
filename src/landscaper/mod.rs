//! Landscaper: Installations, Contexts and ComponentVersionOverwrites (`landscaper.gardener.cloud/v1alpha1`).
//!
//! What it really does was read in its source and executed; `tests/vectors/landscaper/` holds the cases. Names in here
//! are Landscaper's own.

pub mod component_reference;
pub mod context;
pub mod decode;
pub mod dry_run;
mod duration;
pub mod execution;
pub mod export_path;
pub mod installation;
pub mod kinds;
pub mod overwrites;
pub mod repository_context;

use crate::rule::{Mutator, Rule};

/// The rules of this system.
pub fn rules() -> Vec<&'static Rule> {
    overwrites::RULES.to_vec()
}

/// The mutators of this system.
pub fn mutators() -> Vec<&'static Mutator> {
    overwrites::MUTATORS.to_vec()
}
