//! `Context`: the settings shared by the Installations that name it. A Context has no `spec`; its fields are at the top
//! level.
//!
//! Source: Landscaper `apis/core/v1alpha1/types_context.go`.

use serde_json::Value;

use super::decode::{Problem, text};
use super::repository_context::RepositoryContext;
use crate::admission::FieldPath;

/// The name of the Context that an Installation uses if it does not name one (`SetDefaults_Installation`).
pub const DEFAULT: &str = "default";

/// The fields of a Landscaper Context that determine component references and overwrites.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The repository context for component references that do not set a repository context. `None` if the Context has
    /// no repository context.
    pub repository_context: Option<RepositoryContext>,
    /// The name of the ComponentVersionOverwrites object that the Context uses, in the same namespace; `None` if it
    /// uses none.
    pub overwrites: Option<String>,
    /// The names of the Secrets with credentials for registries, in the same namespace.
    pub registry_pull_secrets: Vec<String>,
}

impl Context {
    /// Reads a Context from an object. Values that Landscaper cannot decode are added to `problems` and count as
    /// missing.
    pub fn read(object: &Value, problems: &mut Vec<Problem>) -> Self {
        let field = FieldPath::of(["repositoryContext"]);
        Self {
            repository_context: RepositoryContext::read(object.get("repositoryContext"), &field, problems),
            overwrites: overwrites_name(object).map(str::to_owned),
            registry_pull_secrets: registry_pull_secrets(object),
        }
    }

    /// Reads a Context from an object. Values that Landscaper cannot decode count as missing.
    pub fn of(object: &Value) -> Self {
        Self::read(object, &mut Vec::new())
    }
}

/// Returns the name of the ComponentVersionOverwrites object that a Context uses; `None` if it names none.
pub fn overwrites_name(context: &Value) -> Option<&str> {
    text(context, "componentVersionOverwrites")
}

fn registry_pull_secrets(context: &Value) -> Vec<String> {
    let listed = context.get("registryPullSecrets").and_then(Value::as_array);
    listed.into_iter().flatten().filter_map(|secret| text(secret, "name")).map(str::to_owned).collect()
}
