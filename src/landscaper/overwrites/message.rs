//! The substitution in Landscaper's own words: what it writes into the Installation's condition.
//!
//! Source: `OverwriteToString`, `ReferenceDiff.String` and `repositoryContextDiff` in Landscaper's
//! `pkg/components/model/componentoverwrites/component_overwrites.go`, and `ApplyComponentOverwrite` in
//! `pkg/landscaper/installations/context.go`.

use super::substitution::Substitution;
use crate::landscaper::component_reference::Attribute;
use crate::landscaper::repository_context::RepositoryContext;

/// The condition `ComponentReferenceOverwrite` that Landscaper sets on an Installation whose Context has overwrites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// `True` where an entry matched.
    pub status: &'static str,
    /// Landscaper's reason; one has blanks.
    pub reason: &'static str,
    /// What was overwritten.
    pub message: String,
}

/// The type of the condition.
pub const CONDITION_TYPE: &str = "ComponentReferenceOverwrite";

/// The condition that follows from a substitution.
pub fn condition(substitution: &Substitution) -> Condition {
    if substitution.matched {
        return Condition { status: "True", reason: "FoundOverwrite", message: diff_text(substitution) };
    }
    Condition {
        status: "False",
        reason: "No overwrite defined",
        message: "component reference has not been overwritten".to_owned(),
    }
}

/// What was overwritten: one line, or a heading and a line for each attribute.
pub fn diff_text(substitution: &Substitution) -> String {
    if substitution.changed().next().is_none() {
        return "Component reference has not been overwritten.".to_owned();
    }
    let lines = Attribute::ALL.map(|attribute| line(substitution, attribute));
    format!("Component reference has been overwritten:\n{}", lines.join("\n"))
}

/// The line of one attribute.
pub fn line(substitution: &Substitution, attribute: Attribute) -> String {
    let (old, new) = (&substitution.original, &substitution.result);
    if !substitution.changes(attribute) {
        return format!("{} has not been overwritten", heading(attribute));
    }
    match attribute {
        Attribute::ComponentName => format!("{} -> {}", old.component_name, new.component_name),
        Attribute::Version => format!("{} -> {}", old.version, new.version),
        Attribute::RepositoryContext => {
            repository_context_line(old.repository_context.as_ref(), new.repository_context.as_ref())
        }
    }
}

fn heading(attribute: Attribute) -> &'static str {
    match attribute {
        Attribute::RepositoryContext => "RepositoryContext",
        Attribute::ComponentName => "ComponentName",
        Attribute::Version => "Version",
    }
}

fn repository_context_line(old: Option<&RepositoryContext>, new: Option<&RepositoryContext>) -> String {
    // A substitution can set a repository context but not take it away.
    let Some(new) = new else { return String::new() };
    let Some(old) = old else { return format!("-> {}", new.raw()) };
    match (old.oci_registry(), new.oci_registry()) {
        (Some(old), Some(new)) => format!(
            "{} ({}) -> {} ({})",
            old.base_url, old.component_name_mapping, new.base_url, new.component_name_mapping
        ),
        _ => format!("{} -> {}", old.raw(), new.raw()),
    }
}
