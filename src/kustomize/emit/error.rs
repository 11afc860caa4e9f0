//! Errors for values that kustomize cannot print.

use crate::admission::field::FieldPath;

/// The reason why a document cannot be printed, and its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct EmitError {
    /// The invalid value, or the entry with the invalid key.
    pub path: FieldPath,
    /// The reason.
    pub problem: Problem,
}

impl EmitError {
    /// Prepends `outer` to the path.
    pub(super) fn within(self, outer: &FieldPath) -> Self {
        Self { path: outer.join(&self.path), ..self }
    }
}

impl From<Problem> for EmitError {
    fn from(problem: Problem) -> Self {
        Self { path: FieldPath::root(), problem }
    }
}

/// A reason why kustomize cannot print a value. It prints JSON and parses it as YAML, which allows less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A character that YAML does not allow in a text.
    #[error("the control character U+{:04X} cannot be printed as YAML", u32::from(*.0))]
    Control(char),
    /// A key longer than YAML allows in JSON.
    #[error("a key of more than {max} characters cannot be printed as YAML", max = super::read_back::MAX_KEY)]
    LongKey,
    /// A key with a line break that JSON does not escape.
    #[error("a key with a next-line character (U+0085) cannot be printed as YAML")]
    KeyWithBreak,
    /// A number that JSON does not have.
    #[error("infinity and NaN cannot be printed as JSON")]
    NotFinite,
}
