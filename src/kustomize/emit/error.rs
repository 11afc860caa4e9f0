//! Errors for values that kustomize cannot write as YAML.

use crate::admission::field::FieldPath;

/// Maximum length of a mapping key in characters. kustomize writes objects as JSON and parses the JSON as YAML, and
/// YAML parsers reject longer keys in a flow mapping (`{…}`). The length is that of the JSON text of the key, which
/// includes quotes and escapes.
pub(super) const MAX_KEY: usize = 1024;

/// An error for a document that kustomize cannot write as YAML: the path of the invalid value, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct EmitError {
    /// The path of the invalid value, or of the entry with the invalid key.
    pub path: FieldPath,
    /// The reason why kustomize cannot print the value or key.
    pub problem: Problem,
}

impl EmitError {
    /// Prepends `outer` to the path of the error.
    pub(super) fn within(self, outer: &FieldPath) -> Self {
        Self { path: outer.join(&self.path), ..self }
    }
}

impl From<Problem> for EmitError {
    fn from(problem: Problem) -> Self {
        Self { path: FieldPath::root(), problem }
    }
}

/// A reason why kustomize cannot print a value.
///
/// kustomize converts each object to JSON and parses the JSON as YAML. Some JSON is not valid YAML.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A character in a key or string that YAML does not allow, such as U+007F.
    #[error("the control character U+{:04X} cannot be printed as YAML", u32::from(*.0))]
    Control(char),
    /// A key that is too long: its JSON text has more characters than YAML allows for a key in a flow mapping.
    #[error("a key of more than {max} characters cannot be printed as YAML", max = MAX_KEY)]
    LongKey,
    /// A key with the line break U+0085, which Go's JSON encoder does not escape.
    #[error("a key with a next-line character (U+0085) cannot be printed as YAML")]
    KeyWithBreak,
    /// A number that JSON cannot represent: infinity or NaN.
    #[error("infinity and NaN cannot be printed as JSON")]
    NotFinite,
}
