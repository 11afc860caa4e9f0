//! Errors of parsing, reading and writing field paths, with Crossplane's messages.

use super::{MAX_DEPTH, MAX_EXPANSIONS, MAX_INDEX, Segment, text_of};
use crate::go::quote;

/// The reason why a text is not a valid path. Positions are byte offsets from zero.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// A delimiter at a position where it is not allowed, such as the second dot in `a..b`, or a dot at the end of the
    /// path.
    #[error("unexpected '{delimiter}' at position {position}")]
    Unexpected {
        /// The unexpected delimiter: `.`, `[` or `]`.
        delimiter: char,
        /// The position of `delimiter` in the path, as a byte offset from zero.
        position: usize,
    },
    /// A bracket without its closing bracket.
    #[error("unterminated '[' at position {position}")]
    Unterminated {
        /// The position of the opening bracket.
        position: usize,
    },
}

/// The reason why the value at a path cannot be read or written. `at` is the path of the value at which the error
/// occurred.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The text is not a valid path.
    #[error("cannot parse path {}: {error}", quote(.path))]
    Parse {
        /// The text of the path.
        path: String,
        /// The reason why the text is not a valid path.
        error: ParseError,
    },
    /// The field does not exist.
    #[error("{at}: no such field")]
    NoSuchField {
        /// The path of the missing field.
        at: String,
    },
    /// The list has no element at this index.
    #[error("{at}: no such element")]
    NoSuchElement {
        /// The path of the missing element.
        at: String,
    },
    /// A field cannot be read, because its parent is `null`.
    #[error("{at}: expected map, got nil")]
    Null {
        /// The path of the value that is `null`.
        at: String,
    },
    /// A field cannot be read, because its parent is not an object.
    #[error("{at}: not an object")]
    NotAnObject {
        /// The path of the value that is not an object.
        at: String,
    },
    /// A list element cannot be read, because its parent is not a list.
    #[error("{at}: not an array")]
    NotAnArray {
        /// The path of the value that is not a list.
        at: String,
    },
    /// A field cannot be written, because its existing parent is not an object.
    #[error("{at} is not an object")]
    NoObjectToWrite {
        /// The path of the value that is not an object.
        at: String,
    },
    /// A list element cannot be written, because its existing parent is not a list.
    #[error("{at} is not an array")]
    NoArrayToWrite {
        /// The path of the value that is not a list.
        at: String,
    },
    /// The path to write contains an index above [`MAX_INDEX`].
    #[error("index {index} is greater than max allowed index {MAX_INDEX}")]
    IndexTooHigh {
        /// The index in the path. It is greater than [`MAX_INDEX`].
        index: u32,
    },
    /// The object would be nested deeper than [`MAX_DEPTH`].
    #[error("writing {at} would nest the object deeper than {MAX_DEPTH} levels")]
    TooDeep {
        /// The path to which the value cannot be written.
        at: String,
    },
    /// A list cannot be appended to an existing value, because this value is not a list.
    #[error("failed to merge values: cannot append two slices with different type ([]interface {{}}, {found})")]
    Append {
        /// Go's name for the type of the existing value.
        found: &'static str,
    },
    /// A wildcard was applied to `null`.
    #[error("wildcard field {} is not found in the path", quote(.at))]
    WildcardOnNull {
        /// The path of the value that is `null`.
        at: String,
    },
    /// A wildcard was applied to a value without elements or members.
    #[error("{}: unexpected wildcard usage", quote(.at))]
    WildcardOnScalar {
        /// The path of the value to which the wildcard was applied.
        at: String,
    },
    /// The wildcards expand to more than [`MAX_EXPANSIONS`] paths.
    #[error("the wildcards match more than {MAX_EXPANSIONS} paths")]
    TooManyExpansions,
    /// The wildcards of a path could not be expanded.
    #[error("{0}")]
    Expand(ExpandError),
}

/// The error that occurs when the wildcards `[*]` in a field path are replaced with existing keys and indexes. The
/// error contains the path before and after each successful replacement. For example, if the second wildcard of
/// `a[*].b[*]` cannot be replaced, the error contains `a[*].b[*]` and `a[0].b[*]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpandError {
    /// The stages of the expansion. The first stage is the path itself. In each later stage, one more wildcard is
    /// replaced.
    pub(super) stages: Vec<String>,
    /// The error that stopped the replacement of wildcards, such as a wildcard at a value that is neither a list nor an
    /// object.
    pub(super) cause: Box<PathError>,
}

impl std::fmt::Display for ExpandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, stage) in self.stages.iter().enumerate() {
            let quoted = quote(stage);
            match at {
                0 => write!(f, "cannot expand wildcards for segments: {quoted}: ")?,
                _ => write!(f, "{quoted}: cannot expand wildcards: ")?,
            }
        }
        write!(f, "{}", self.cause)
    }
}

impl PathError {
    /// Returns whether the error is a missing value, and not a value of the wrong type. Patches with the policy
    /// `Optional` skip missing values.
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::NoSuchField { .. } | Self::NoSuchElement { .. } | Self::Null { .. } | Self::WildcardOnNull { .. } => {
                true
            }
            Self::Expand(error) => error.cause.is_not_found(),
            _ => false,
        }
    }

    pub(super) fn no_such(segments: &[Segment]) -> Self {
        let at = text_of(segments);
        match segments.last() {
            Some(Segment::Index(_)) => Self::NoSuchElement { at },
            _ => Self::NoSuchField { at },
        }
    }
}
