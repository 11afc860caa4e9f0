//! `Context`: what the Installations that name it share. It has no spec; its fields are at the top.
//!
//! Source: Landscaper `apis/core/v1alpha1/types_context.go`.

use serde_json::Value;

use super::kinds;
use super::repository_context::RepositoryContext;
use crate::admission::FieldPath;

/// The context of an Installation that names none (`SetDefaults_Installation`).
pub const DEFAULT: &str = "default";

/// What overwrites need to know of a Context.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The repository context of component references that have none.
    pub repository_context: Option<RepositoryContext>,
    /// The name of its ComponentVersionOverwrites, in the same namespace.
    pub overwrites: Option<String>,
}

impl Context {
    /// Reads a Context; what Landscaper could not decode is taken for missing, and told in `problems`.
    pub fn read(object: &Value, problems: &mut Vec<Problem>) -> Self {
        let field = FieldPath::of(["repositoryContext"]);
        Self {
            repository_context: RepositoryContext::read(object.get("repositoryContext"), &field, problems),
            overwrites: overwrites_name(object).map(str::to_owned),
        }
    }

    /// Reads a stored Context.
    pub fn of(object: &Value) -> Self {
        Self::read(object, &mut Vec::new())
    }
}

/// The name of the overwrites that a Context uses.
pub fn overwrites_name(context: &Value) -> Option<&str> {
    kinds::text(context, "componentVersionOverwrites")
}

/// A value that Landscaper cannot decode, so that it cannot work with the object at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it is.
    pub field: FieldPath,
    /// What it is, such as `a string`.
    pub is: &'static str,
    /// Its text, shortened.
    pub found: String,
    /// What it must be.
    pub wanted: &'static str,
}

/// Lets `read` tell problems with their place in a part of an object, and puts the place of that part before it.
///
/// Places are worked out only where there is a problem: mostly there is none, and many parts are read.
pub(super) fn within(
    problems: &mut Vec<Problem>,
    place: impl FnOnce() -> FieldPath,
    read: impl FnOnce(&mut Vec<Problem>),
) {
    let mut inner = Vec::new();
    read(&mut inner);
    if inner.is_empty() {
        return;
    }
    let place = place();
    problems.extend(inner.into_iter().map(|problem| Problem { field: place.join(&problem.field), ..problem }));
}
