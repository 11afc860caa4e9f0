//! Computes the condition that Landscaper sets on an Installation after it has applied a ComponentVersionOverwrites
//! object to the Installation's component reference. The message of the condition describes the changes.
//!
//! Source: `OverwriteToString`, `ReferenceDiff.String` and `repositoryContextDiff` in Landscaper's
//! `pkg/components/model/componentoverwrites/component_overwrites.go`, and `ApplyComponentOverwrite` in
//! `pkg/landscaper/installations/context.go`.

use crate::landscaper::component_reference::Attribute;
use crate::landscaper::repository_context::RepositoryContext;
use crate::landscaper::substitution::Substitution;

/// The condition `ComponentReferenceOverwrite` that Landscaper sets on an Installation whose Context has overwrites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The status of the condition: `True` if an entry of the overwrites matches the component reference, else `False`.
    pub status: &'static str,
    /// The reason of the condition, as Landscaper writes it: `FoundOverwrite`, or `No overwrite defined`.
    pub reason: &'static str,
    /// The message of the condition. If an entry of the overwrites matches the component reference, this is the text of
    /// [`diff_text`]. Otherwise, it states that the component reference was not overwritten.
    pub message: String,
}

/// The type of the condition that Landscaper sets on an Installation whose Context has overwrites.
pub const CONDITION_TYPE: &str = "ComponentReferenceOverwrite";

/// Returns the condition that Landscaper sets on an Installation after it has applied overwrites to the component
/// reference of the Installation. `substitution` is the result of applying the overwrites.
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

/// Returns a text that describes how overwrites changed a component reference. The text is one line if nothing changed.
/// Otherwise, it consists of a heading and one line per attribute.
pub fn diff_text(substitution: &Substitution) -> String {
    if substitution.changed().next().is_none() {
        return "Component reference has not been overwritten.".to_owned();
    }
    let lines = Attribute::ALL.map(|attribute| line(substitution, attribute));
    format!("Component reference has been overwritten:\n{}", lines.join("\n"))
}

/// Returns one line that says whether and how overwrites changed one attribute of a component reference. The text is
/// the same as Landscaper's.
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
    // A substitution can set a repository context but cannot remove it.
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
