//! What is wrong with a path, or with the object that it is followed in. The words are Crossplane's.

use super::{MAX_DEPTH, MAX_EXPANSIONS, MAX_INDEX, Segment, text_of};
use crate::crossplane::go::quote;

/// Why a text is no path. Positions are counted in bytes from zero.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// A delimiter where a name has to stand, or nothing after a dot.
    #[error("unexpected '{delimiter}' at position {position}")]
    Unexpected {
        /// The delimiter.
        delimiter: char,
        /// Where it stands.
        position: usize,
    },
    /// A bracket that is never closed.
    #[error("unterminated '[' at position {position}")]
    Unterminated {
        /// Where it stands.
        position: usize,
    },
}

/// Why a path leads nowhere in an object. `at` is the part of the path that says where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The text is no path.
    #[error("cannot parse path {}: {error}", quote(.path))]
    Parse {
        /// The text.
        path: String,
        /// What is wrong with it.
        error: ParseError,
    },
    /// There is no such member.
    #[error("{at}: no such field")]
    NoSuchField {
        /// The member.
        at: String,
    },
    /// The list is shorter.
    #[error("{at}: no such element")]
    NoSuchElement {
        /// The element.
        at: String,
    },
    /// A member of `null` was asked for.
    #[error("{at}: expected map, got nil")]
    Null {
        /// What is `null`.
        at: String,
    },
    /// A member was asked for, of something that has none.
    #[error("{at}: not an object")]
    NotAnObject {
        /// What is none.
        at: String,
    },
    /// An element was asked for, of something that has none.
    #[error("{at}: not an array")]
    NotAnArray {
        /// What is none.
        at: String,
    },
    /// A member was to be written into something that has none.
    #[error("{at} is not an object")]
    NoObjectToWrite {
        /// What is none.
        at: String,
    },
    /// An element was to be written into something that has none.
    #[error("{at} is not an array")]
    NoArrayToWrite {
        /// What is none.
        at: String,
    },
    /// An index beyond [`MAX_INDEX`] was to be written.
    #[error("index {index} is greater than max allowed index {MAX_INDEX}")]
    IndexTooHigh {
        /// The index.
        index: u32,
    },
    /// Writing would nest the object deeper than [`MAX_DEPTH`].
    #[error("writing {at} would nest the object deeper than {MAX_DEPTH} levels")]
    TooDeep {
        /// What was to be written.
        at: String,
    },
    /// A list was to be appended to something else.
    #[error("failed to merge values: cannot append two slices with different type ([]interface {{}}, {found})")]
    Append {
        /// Go's name for the type of what stands there.
        found: &'static str,
    },
    /// A wildcard on `null`.
    #[error("wildcard field {} is not found in the path", quote(.at))]
    WildcardOnNull {
        /// What is `null`.
        at: String,
    },
    /// A wildcard on something that has neither elements nor members.
    #[error("{}: unexpected wildcard usage", quote(.at))]
    WildcardOnScalar {
        /// What has none.
        at: String,
    },
    /// The wildcards stand for more than [`MAX_EXPANSIONS`] places.
    #[error("they stand for more than {MAX_EXPANSIONS} places")]
    TooManyExpansions,
    /// The wildcards of a path could not be expanded.
    #[error("{0}")]
    Expand(ExpandError),
}

/// Which path with wildcards could not be expanded, how far it was, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpandError {
    /// The path, and then the path with its first wildcard replaced, with its first two, and so on.
    pub(super) stages: Vec<String>,
    /// What went wrong in the last of them.
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
    /// Whether something is missing, rather than of another type than the path needs: what the policy `Optional`
    /// passes over.
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
