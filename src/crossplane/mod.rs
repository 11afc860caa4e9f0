//! Crossplane: composition environments, worked out at admission.
//!
//! | module | what is in it |
//! |---|---|
//! | [`breaks`] | what breaks when an EnvironmentConfig becomes another |
//! | [`composite`] | composites: which Composition one uses, and which EnvironmentConfigs |
//! | [`composition`] | Compositions: the environment that one declares, and what is wrong with its text |
//! | [`configs`] | EnvironmentConfigs in the catalog |
//! | [`configuration`] | what the configuration file says about environments |
//! | [`environment`] | what a Composition says about its environment, and what comes of it |
//! | [`explain`] | the working behind an environment, for people, programs and as a drawing |
//! | [`field_path`] | paths such as `spec.items[0].name`: reading, writing, wildcards, merging |
//! | [`foreseen`] | patches that fail for every composite |
//! | [`go`] | what Go's standard library makes of values: the parts that Crossplane's results depend on |
//! | [`kinds`] | what is looked up |
//! | [`schema`] | the schema that a Composition declares for its environment |
//! | [`structural`] | the schema of composites: pruning, defaults and validation, as the API server does them |
//! | [`users`] | who uses an EnvironmentConfig |

pub mod breaks;
pub mod composite;
pub mod composition;
pub mod configs;
pub mod configuration;
pub mod environment;
pub mod explain;
pub mod field_path;
pub mod foreseen;
pub mod go;
pub mod kinds;
mod rules;
pub mod schema;
pub mod structural;
pub mod users;

use crate::catalog::Declaration;
use crate::rule::{Mutator, Rule};

/// The rules of this system, in the order of their ids.
pub fn rules() -> Vec<&'static Rule> {
    rules::RULES.to_vec()
}

/// The kinds that are known only at run time.
pub fn declarations() -> Vec<&'static Declaration> {
    vec![&kinds::COMPOSITES, &kinds::CLAIMS]
}

/// The mutators of this system.
pub fn mutators() -> Vec<&'static Mutator> {
    vec![&composite::mutator::MUTATOR]
}
