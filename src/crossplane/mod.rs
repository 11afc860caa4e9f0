//! Crossplane: composition environments, computed at admission.
//!
//! | module | contents |
//! |---|---|
//! | [`impact`] | the impact of changing or deleting an EnvironmentConfig |
//! | [`composite_references`] | the references in a composite |
//! | [`composite`] | composites: which Composition and which EnvironmentConfigs one uses |
//! | [`composition`] | Compositions: their declared environment, and problems in their text |
//! | [`configs`] | EnvironmentConfigs in the catalog |
//! | [`configuration`] | the section `environmentConfigs` of the configuration file |
//! | [`environment`] | the engine: the declared environment of a Composition, and its computation |
//! | [`explain`] | explanations of an environment as text, JSON and SVG |
//! | [`field_path`] | paths such as `spec.items[0].name`: reading, writing, wildcards, merging |
//! | [`patch_failures`] | patches that fail for every composite |
//! | [`kinds`] | the kinds and indexes that rules look up |
//! | [`schema`] | the schema that a Composition declares for its environment |
//! | [`structural`] | the schema of composites: pruning, defaults and validation, as the API server does them |
//! | [`users`] | the users of an EnvironmentConfig |

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

/// Returns the declarations of kinds that CompositeResourceDefinitions define at run time: composites and claims.
pub fn declarations() -> Vec<&'static Declaration> {
    vec![&kinds::COMPOSITES, &kinds::CLAIMS]
}

/// Returns the mutators of Crossplane.
pub fn mutators() -> Vec<&'static Mutator> {
    vec![&composite::mutator::MUTATOR]
}
