//! What is wrong with an environment, in the words of Kubernetes' field errors.

use serde_json::Value;

use crate::admission::{FieldPath, json as wire};

/// What a problem is about; every rule about the text of a Composition speaks of one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// What must be there, and of which type it is.
    Structure,
    /// Field paths.
    Path,
    /// Regular expressions, their groups, and the verbs of formats.
    Expression,
    /// Keys and values of labels.
    Label,
    /// Bounds of a selector against each other, and its order.
    Bounds,
    /// What stands there and does nothing.
    Ignored,
    /// Fields that there are not.
    Unknown,
    /// What the declared schema of the environment does not have.
    Schema,
}

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What it is about.
    pub topic: Topic,
    /// Where it is.
    pub field: FieldPath,
    /// What is wrong: a field error without its field.
    pub message: String,
    /// How to mend it.
    pub help: Option<String>,
    /// Whether Crossplane works on in spite of it: a warning, whatever the level of its rule.
    pub is_mild: bool,
}

impl Problem {
    /// A problem in words of its own.
    pub fn new(topic: Topic, field: FieldPath, message: impl Into<String>) -> Self {
        Self { topic, field, message: message.into(), help: None, is_mild: false }
    }

    /// Something that must be there and is not.
    pub fn required(field: FieldPath, detail: &str) -> Self {
        Self::new(Topic::Structure, field, format!("Required value: {detail}"))
    }

    /// A value that cannot stand there.
    pub fn invalid(topic: Topic, field: FieldPath, value: &Value, detail: impl AsRef<str>) -> Self {
        Self::new(topic, field, format!("Invalid value: {}: {}", wire::brief(value), detail.as_ref()))
    }

    /// A value that is none of those that there are.
    pub fn unsupported(field: FieldPath, value: &str, supported: &[&str]) -> Self {
        let list: Vec<_> = supported.iter().map(|word| format!("{word:?}")).collect();
        let message =
            format!("Unsupported value: {}: supported values: {}", wire::brief(&Value::from(value)), list.join(", "));
        Self::new(Topic::Structure, field, message)
    }

    /// Something that must not be there.
    pub fn forbidden(field: FieldPath, detail: &str) -> Self {
        Self::new(Topic::Structure, field, format!("Forbidden: {detail}"))
    }

    /// Something that stands there and does nothing.
    pub fn ignored(field: FieldPath, why: impl Into<String>) -> Self {
        Self::new(Topic::Ignored, field, why)
    }

    /// Says how to mend it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Says that Crossplane works on in spite of it.
    #[must_use]
    pub fn mild(mut self) -> Self {
        self.is_mild = true;
        self
    }
}
