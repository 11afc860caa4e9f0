//! Problems that the checks of a Crossplane Composition find. Their messages have the style of Kubernetes field errors,
//! such as `Required value: name is required`.

use serde_json::Value;

use crate::admission::{FieldPath, json as wire};

/// The topic of a problem in a Composition, such as an invalid field path. For each topic, one rule reports the
/// problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// Missing fields and wrong types.
    Structure,
    /// Invalid field paths.
    Path,
    /// Invalid expressions in transforms. Examples are invalid regular expressions, missing capture groups, invalid
    /// verbs in formats, and values that a transform does not accept.
    Expression,
    /// Invalid keys and values of labels.
    Label,
    /// Invalid values of `minMatch`, `maxMatch` and `sortByFieldPath` in selectors.
    Bounds,
    /// Fields and patches without effect.
    Ignored,
    /// Unknown fields of an environment, or of the input of a function.
    Unknown,
    /// Patches that contradict the declared schema of the environment or the schema of the composite.
    Schema,
}

/// A problem that a check found in a Composition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The topic. It selects the rule that reports the problem.
    pub topic: Topic,
    /// The field with the problem.
    pub field: FieldPath,
    /// The message in the style of a Kubernetes field error, such as `Required value: name is required`, without the
    /// field.
    pub message: String,
    /// How to fix the problem.
    pub help: Option<String>,
    /// Whether Crossplane continues despite the problem. The finding then has at most level `warn`.
    pub is_warning: bool,
}

impl Problem {
    /// Creates a problem with this message. The field `help`, which says how to fix the problem, is `None`.
    pub fn new(topic: Topic, field: FieldPath, message: impl Into<String>) -> Self {
        Self { topic, field, message: message.into(), help: None, is_warning: false }
    }

    /// Creates a problem about a missing field. `detail` is the reason in the message, such as `name is required`.
    pub fn required(field: FieldPath, detail: &str) -> Self {
        Self::new(Topic::Structure, field, format!("Required value: {detail}"))
    }

    /// Creates a problem about a field with the invalid value `value`. `detail` is the reason in the message.
    pub fn invalid(topic: Topic, field: FieldPath, value: &Value, detail: impl AsRef<str>) -> Self {
        Self::new(topic, field, format!("Invalid value: {}: {}", wire::brief(value), detail.as_ref()))
    }

    /// Creates a problem about a value that is not in the list of supported values.
    pub fn unsupported(field: FieldPath, value: &str, supported: &[&str]) -> Self {
        let list: Vec<_> = supported.iter().map(|word| format!("{word:?}")).collect();
        let message =
            format!("Unsupported value: {}: supported values: {}", wire::brief(&Value::from(value)), list.join(", "));
        Self::new(Topic::Structure, field, message)
    }

    /// Creates a problem about a field that must not be set. `detail` is the reason in the message.
    pub fn forbidden(field: FieldPath, detail: &str) -> Self {
        Self::new(Topic::Structure, field, format!("Forbidden: {detail}"))
    }

    /// Creates a problem for a field or a patch that has no effect. `field` is the path of this field or patch in the
    /// Composition. `why` is the message.
    pub fn ignored(field: FieldPath, why: impl Into<String>) -> Self {
        Self::new(Topic::Ignored, field, why)
    }

    /// Adds a help text, which says how to fix the problem.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Makes the problem a warning, because Crossplane continues despite it.
    #[must_use]
    pub fn as_warning(mut self) -> Self {
        self.is_warning = true;
        self
    }
}
