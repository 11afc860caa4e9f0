//! Reads the Context name and the component reference of an `Installation`. The Context selects a
//! ComponentVersionOverwrites object, which can replace the component reference.
//!
//! Source: `GetReferenceFromComponentDescriptorDefinition` in Landscaper's `pkg/landscaper/installations/helper.go`. An
//! inline component descriptor counts as a component reference. This reference has the name and version of the
//! descriptor, and the last of its repository contexts.

use serde_json::{Value, json};

use super::component_reference::{Attribute, ComponentReference};
use super::context;
use super::decode::{Problem, text, within};
use super::repository_context::RepositoryContext;
use crate::admission::{FieldPath, Path};

/// Returns the name of the Context that an Installation uses; `default` if the Installation names none.
pub fn context_name(installation: &Value) -> &str {
    installation.get("spec").and_then(|spec| text(spec, "context")).unwrap_or(context::DEFAULT)
}

/// The place of the component reference in an Installation: in `ref`, or in an inline component descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// The reference is in `spec.componentDescriptor.ref`.
    Ref,
    /// The Installation contains no reference, but a component descriptor in `spec.componentDescriptor.inline`. The
    /// name, the version and the last repository context of the descriptor are used as the reference.
    Inline {
        /// The number of repository contexts in the inline descriptor; `None` if it has no list of them.
        repository_contexts: Option<usize>,
    },
}

impl Location {
    /// Returns the JSON pointer to an attribute of the component reference in the Installation.
    ///
    /// If an inline descriptor has no repository context, returns the pointer at which a JSON Patch can add one.
    pub fn pointer(self, attribute: Attribute) -> String {
        let part = match (self, attribute) {
            (Self::Ref, attribute) => return format!("/spec/componentDescriptor/ref/{attribute}"),
            (Self::Inline { .. }, Attribute::ComponentName) => "name".to_owned(),
            (Self::Inline { .. }, Attribute::Version) => "version".to_owned(),
            (Self::Inline { repository_contexts: None }, _) => "repositoryContexts".to_owned(),
            (Self::Inline { repository_contexts: Some(0) }, _) => "repositoryContexts/-".to_owned(),
            (Self::Inline { repository_contexts: Some(n) }, _) => format!("repositoryContexts/{}", n - 1),
        };
        format!("/spec/componentDescriptor/inline/component/{part}")
    }

    /// Returns the JSON value to write at [`Location::pointer`], to set an attribute of the component reference to
    /// `value`.
    ///
    /// Usually, this is `value` itself. There is one exception: if an inline component descriptor has no list of
    /// repository contexts, and `value` is a repository context, returns a list that contains only `value`.
    pub fn wrap(self, attribute: Attribute, value: Value) -> Value {
        match (self, attribute) {
            (Self::Inline { repository_contexts: None }, Attribute::RepositoryContext) => json!([value]),
            _ => value,
        }
    }
}

/// The paths of the fields that determine the Context and the component reference of an Installation.
pub(super) const REFERENCE: &[Path] = &[&["spec", "context"], &["spec", "componentDescriptor"]];

/// Returns the component reference of an Installation, and its place: `spec.componentDescriptor.ref`, or an inline
/// component descriptor. `None` if the Installation has neither.
///
/// If Landscaper cannot decode a value of `ref`, or a repository context of an inline descriptor, an error is added to
/// `problems`, and the value counts as missing.
pub fn component_reference(
    installation: &Value,
    problems: &mut Vec<Problem>,
) -> Option<(Location, ComponentReference)> {
    let descriptor = installation.get("spec")?.get("componentDescriptor")?;
    let place = |part| FieldPath::of(["spec", "componentDescriptor", part]);
    if let Some(inline) = descriptor.get("inline").filter(|inline| !inline.is_null()) {
        let component = inline.get("component").unwrap_or(&Value::Null);
        return Some(inline_reference(component, &place("inline").key("component"), problems));
    }
    let reference = descriptor.get("ref").filter(|reference| !reference.is_null())?;
    let mut read = ComponentReference::default();
    within(problems, || place("ref"), |problems| read = ComponentReference::of(reference, problems));
    Some((Location::Ref, read))
}

fn inline_reference(
    component: &Value,
    field: &FieldPath,
    problems: &mut Vec<Problem>,
) -> (Location, ComponentReference) {
    let field = field.key("repositoryContexts");
    let contexts = component.get("repositoryContexts").and_then(Value::as_array);
    let read = contexts.into_iter().flatten().enumerate();
    let repository_context =
        read.map(|(at, value)| RepositoryContext::read(Some(value), &field.index(at), problems)).last().flatten();
    let text = |key| component.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let reference = ComponentReference { repository_context, component_name: text("name"), version: text("version") };
    (Location::Inline { repository_contexts: contexts.map(Vec::len) }, reference)
}
