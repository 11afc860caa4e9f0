//! References to component versions. A reference has a name, a version and a repository context.
//!
//! An empty name or version counts as missing. A repository context counts as missing only if it is `null` or absent.
//!
//! Source: `ComponentDescriptorReference` and `ComponentVersionOverwriteReference` in Landscaper's
//! `apis/core/v1alpha1`.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use super::decode::{Problem, problem, within};
use super::repository_context::RepositoryContext;
use crate::admission::{FieldPath, json as wire};

/// An attribute of a component reference. The order of the variants is their order in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Attribute {
    /// The location of the component version, such as an OCI registry.
    RepositoryContext,
    /// The name of the component.
    ComponentName,
    /// The version of the component.
    Version,
}

impl Attribute {
    /// All attributes of a component reference, in the order in which messages list them.
    pub const ALL: [Self; 3] = [Self::RepositoryContext, Self::ComponentName, Self::Version];

    /// Returns the name of the attribute's field in Landscaper's objects, such as `componentName`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RepositoryContext => "repositoryContext",
            Self::ComponentName => "componentName",
            Self::Version => "version",
        }
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A reference to a component version. In the `source` or `substitution` of an overwrite, attributes may be
/// unspecified.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ComponentReference {
    /// The repository of the component version; `None` if unspecified.
    pub repository_context: Option<RepositoryContext>,
    /// The name of the component; empty if unspecified.
    pub component_name: String,
    /// The version of the component; empty if unspecified.
    pub version: String,
}

impl ComponentReference {
    /// Parses a component reference from the JSON text `text`. Values that Landscaper cannot decode are added to
    /// `problems` and count as unspecified. `field` is the field path of the reference in its object. The field paths
    /// in `problems` begin with `field`.
    pub fn parse(text: &str, field: &FieldPath, problems: &mut Vec<Problem>) -> Self {
        let mut reference = Self::default();
        within(problems, || field.clone(), |problems| reference.fill(text, problems));
        reference
    }

    /// Reads a component reference from a JSON value. Values that Landscaper cannot decode are added to `problems` and
    /// count as unspecified. The field paths in `problems` are relative to the reference.
    pub(super) fn of(value: &Value, problems: &mut Vec<Problem>) -> Self {
        let mut reference = Self::default();
        match value {
            Value::Null => {}
            Value::Object(members) => reference.fill_from(members, problems),
            other => problems.push(problem(FieldPath::root(), other, "an object")),
        }
        reference
    }

    fn fill_from(&mut self, members: &Map<String, Value>, problems: &mut Vec<Problem>) {
        let text = |key: &str, target: &mut String, problems: &mut Vec<Problem>| match members.get(key) {
            Some(Value::String(text)) => target.clone_from(text),
            None | Some(Value::Null) => {}
            Some(other) => problems.push(problem(FieldPath::of([key]), other, "a string")),
        };
        text("componentName", &mut self.component_name, problems);
        text("version", &mut self.version, problems);
        if let Some(value) = members.get("repositoryContext") {
            let mut found = Vec::new();
            self.repository_context = RepositoryContext::read(Some(value), &FieldPath::root(), &mut found);
            within(problems, || FieldPath::of(["repositoryContext"]), |problems| problems.append(&mut found));
        }
    }

    /// Decodes the JSON object `text` into this reference. Each field of `text` replaces the attribute of the same
    /// name. If a field occurs several times, the last one wins, as in Go. Values that Landscaper cannot decode are
    /// added to `problems`.
    pub(super) fn fill(&mut self, text: &str, problems: &mut Vec<Problem>) {
        let Ok(members) = wire::members(text) else {
            return not_an_object(text, problems);
        };
        for (key, raw) in members {
            within(problems, || FieldPath::of([&*key]), |problems| self.fill_member(&key, raw.get(), problems));
        }
    }

    fn fill_member(&mut self, key: &str, text: &str, problems: &mut Vec<Problem>) {
        match key {
            "repositoryContext" => match RepositoryContext::parse(text, &FieldPath::root()) {
                Ok(context) => self.repository_context = context,
                Err(problem) => problems.push(problem),
            },
            "componentName" => fill_text(&mut self.component_name, text, problems),
            "version" => fill_text(&mut self.version, text, problems),
            _ => {}
        }
    }

    /// Reports whether the reference specifies an attribute.
    pub fn specifies(&self, attribute: Attribute) -> bool {
        match attribute {
            Attribute::RepositoryContext => self.repository_context.is_some(),
            Attribute::ComponentName => !self.component_name.is_empty(),
            Attribute::Version => !self.version.is_empty(),
        }
    }

    /// Returns the attributes that are specified, in the order of [`Attribute::ALL`].
    pub fn specified(&self) -> impl Iterator<Item = Attribute> + '_ {
        Attribute::ALL.into_iter().filter(|attribute| self.specifies(*attribute))
    }

    /// Reports whether an attribute has the same value in this reference and in `other`.
    pub fn agrees(&self, other: &Self, attribute: Attribute) -> bool {
        match attribute {
            Attribute::RepositoryContext => self.repository_context == other.repository_context,
            Attribute::ComponentName => self.component_name == other.component_name,
            Attribute::Version => self.version == other.version,
        }
    }

    /// Copies the value of an attribute from `other` into this reference.
    pub fn take(&mut self, other: &Self, attribute: Attribute) {
        match attribute {
            Attribute::RepositoryContext => self.repository_context.clone_from(&other.repository_context),
            Attribute::ComponentName => self.component_name.clone_from(&other.component_name),
            Attribute::Version => self.version.clone_from(&other.version),
        }
    }

    /// Returns the value of an attribute as JSON. An unspecified repository context is `null`; other unspecified
    /// attributes are empty strings.
    pub fn value(&self, attribute: Attribute) -> Value {
        match attribute {
            Attribute::RepositoryContext => {
                self.repository_context.as_ref().map_or(Value::Null, |context| context.value().clone())
            }
            Attribute::ComponentName => Value::from(self.component_name.as_str()),
            Attribute::Version => Value::from(self.version.as_str()),
        }
    }

    /// Returns the value of an attribute as a short text for messages.
    pub fn brief(&self, attribute: Attribute) -> String {
        match attribute {
            Attribute::RepositoryContext => {
                self.repository_context.as_ref().map_or_else(|| "none".to_owned(), RepositoryContext::brief)
            }
            Attribute::ComponentName => self.component_name.clone(),
            Attribute::Version => self.version.clone(),
        }
    }

    /// Returns the reference with `context` as its repository context, if the reference has none of its own. Otherwise,
    /// returns the reference unchanged. `context` is the repository context of the Landscaper Context; `None` if the
    /// Landscaper Context has none.
    #[must_use]
    pub fn or_repository_context(mut self, context: Option<&RepositoryContext>) -> Self {
        if self.repository_context.is_none() {
            self.repository_context = context.cloned();
        }
        self
    }

    /// Returns the reference as JSON, without unspecified attributes.
    pub fn to_json(&self) -> Value {
        let parts = self.specified().map(|attribute| (attribute.to_string(), self.value(attribute)));
        Value::Object(parts.collect())
    }
}

fn fill_text(target: &mut String, text: &str, problems: &mut Vec<Problem>) {
    match wire::parse(text) {
        Ok(Value::String(text)) => *target = text,
        Ok(Value::Null) | Err(_) => {}
        Ok(other) => problems.push(problem(FieldPath::root(), &other, "a string")),
    }
}

fn not_an_object(text: &str, problems: &mut Vec<Problem>) {
    let value = wire::parse(text).unwrap_or(Value::Null);
    if !value.is_null() {
        problems.push(problem(FieldPath::root(), &value, "an object"));
    }
}
