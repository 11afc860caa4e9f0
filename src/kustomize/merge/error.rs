//! Errors of patches that cannot be merged into an object.

use crate::admission::field::FieldPath;
use crate::kustomize::node::{Kind, Node};

/// The reason why a patch cannot be merged into an object, and the path of the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct MergeError {
    /// The path of the field that cannot be merged, or of the list that contains it.
    pub path: FieldPath,
    /// The reason why the patch cannot be merged.
    pub problem: Problem,
}

impl MergeError {
    /// Creates the error for a field of a patch that must be a mapping but has another type. `path` is the path of the
    /// field, and `found` is its value.
    pub fn no_mapping(path: FieldPath, found: &Node) -> Self {
        Self { path, problem: Problem::WrongKind { expected: "a mapping", found: kind_name(found) } }
    }

    /// Prepends a key to the path of the error.
    pub(super) fn within(self, key: &str) -> Self {
        Self { path: FieldPath::root().key(key).join(&self.path), ..self }
    }
}

impl From<Problem> for MergeError {
    fn from(problem: Problem) -> Self {
        Self { path: FieldPath::root(), problem }
    }
}

/// A reason why a patch cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The object and the patch have nodes of different types at the same path, such as a list and a mapping.
    #[error("{expected} was expected here, not {found}")]
    WrongKind {
        /// The expected type of node, such as `a mapping`.
        expected: &'static str,
        /// The type of the unexpected node, such as `a list`.
        found: &'static str,
    },
    /// An unknown value of `$patch`.
    #[error("`$patch: {0}` is not known: it must be delete, replace or merge")]
    Directive(String),
}

/// Returns the type of a node for messages, such as `a mapping`.
pub(super) fn kind_name(node: &Node) -> &'static str {
    match node.kind {
        Kind::Scalar(_) => "a scalar",
        Kind::Map(_) => "a mapping",
        Kind::Seq(_) => "a list",
    }
}
