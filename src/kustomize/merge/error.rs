//! Errors of patches that do not fit an object.

use crate::admission::field::FieldPath;
use crate::kustomize::node::{Kind, Node};

/// The reason why a patch cannot be merged, and the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct MergeError {
    /// The field, or the list with invalid elements.
    pub path: FieldPath,
    /// The reason.
    pub problem: Problem,
}

impl MergeError {
    /// Prepends a key to the path.
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
    /// Object and patch have different kinds of nodes.
    #[error("{expected} was expected here, not {found}")]
    WrongKind {
        /// The kind of the other node.
        expected: &'static str,
        /// The kind of this node.
        found: &'static str,
    },
    /// An unknown value of `$patch`.
    #[error("`$patch: {0}` is not known: it must be delete, replace or merge")]
    Directive(String),
}

/// Returns the name of the kind of a node.
pub(super) fn kind_name(node: &Node) -> &'static str {
    match node.kind {
        Kind::Scalar(_) => "a scalar",
        Kind::Map(_) => "a mapping",
        Kind::Seq(_) => "a list",
    }
}
