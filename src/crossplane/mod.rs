//! Checks the Crossplane objects of admission requests, and computes the environments of composites. An environment is
//! the data that a Composition merges from EnvironmentConfigs. The patches of the Composition copy values from this
//! data to composites and composed resources.
//!
//! This table says what each module does or contains:
//!
//! | module | purpose |
//! |---|---|
//! | [`impact`] | computes how changing or deleting an EnvironmentConfig affects composites |
//! | [`composite_references`] | reads which Composition and which EnvironmentConfigs a composite references |
//! | [`composite`] | finds the Composition of a composite, and computes its environment |
//! | [`composition`] | reads the environment that a Composition declares, and reports errors in it |
//! | [`configs`] | finds EnvironmentConfigs in the catalog, which caches objects of the cluster |
//! | [`configuration`] | contains the section `environmentConfigs` of the configuration file |
//! | [`environment`] | selects and merges EnvironmentConfigs, and applies patches |
//! | [`explain`] | explains how an environment is computed, as text, JSON or SVG |
//! | [`field_path`] | reads and writes values at paths such as `spec.items[0].name` |
//! | [`patch_failures`] | finds patches of a Composition that fail for every composite |
//! | [`kinds`] | contains the kinds that rules look up, and their indexes |
//! | [`schema`] | reads the schema that a Composition declares for its environment |
//! | [`structural`] | applies the schema of composites as the API server does: pruning, defaults, validation |
//! | [`users`] | finds the objects that use an EnvironmentConfig |

pub mod api;
pub mod composite;
pub mod composite_references;
pub mod composition;
pub mod configs;
pub mod configuration;
pub mod environment;
pub mod explain;
pub mod field_path;
pub mod impact;
pub mod kinds;
pub mod patch_failures;
mod rules;
pub mod schema;
pub mod structural;
pub mod users;

use crate::catalog::Declaration;
use crate::rule::{Mutator, Rule};

/// Returns the rules of Crossplane, in the order of their ids.
pub fn rules() -> Vec<&'static Rule> {
    rules::RULES.to_vec()
}

/// Returns a `Declaration` for composites and one for claims. Each describes kinds that are known only at run time,
/// because CompositeResourceDefinitions in the cluster define them.
pub fn declarations() -> Vec<&'static Declaration> {
    vec![&kinds::COMPOSITES, &kinds::CLAIMS]
}

/// Returns the mutators of Crossplane.
pub fn mutators() -> Vec<&'static Mutator> {
    vec![&composite::mutator::MUTATOR]
}
