//! Errors in the paths and keys of exports.

use std::fmt;

/// The class of an error in a path or key of an export. Tests compare the class with the recorded results of
/// Landscaper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The syntax of the path or key is invalid.
    Parse,
    /// The path is valid, but cannot be evaluated on the object.
    Evaluation,
    /// The path has several template groups (`{…}`), and the first one does not have exactly one result.
    Count,
    /// The path consists only of `range` loops, and they produce no result. Landscaper reports the error `not found`.
    Empty,
    /// The path finds nothing, and Landscaper panics.
    Panic,
    /// The path finds several values in random order, and Landscaper uses an arbitrary one of them.
    Random,
    /// The key of the export contains a JSONPath element that is not a field name, such as an index.
    Unsupported,
    /// The path or key is too long, is nested too deeply, or needs too many steps to evaluate. These are limits of
    /// Portcullis, not of Landscaper.
    Bound,
}

/// An error in a path or key of an export. If Landscaper reports the error too, the message is the same as
/// Landscaper's, so that users can search for it in Landscaper's log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The syntax of the path or key is invalid. Contains the error message.
    #[error("{0}")]
    Syntax(String),
    /// The object does not have the field with this name.
    #[error("{0} is not found")]
    NotFound(String),
    /// The path cannot be evaluated on the object, for a reason other than a missing field. Contains the reason.
    #[error("{0}")]
    Mismatch(String),
    /// The JSONPath consists of several expressions in braces, such as `{.a}{.b}`, and the first one does not select
    /// exactly one value. Landscaper rejects such a path. The class of this error is [`Class::Count`].
    #[error("expected exactly one result")]
    Count,
    /// The JSONPath consists only of `range` loops, and they produce no result ([`Class::Empty`]).
    #[error("not found")]
    Empty,
    /// The path finds nothing, and Landscaper panics ([`Class::Panic`]).
    #[error("nothing is found, which makes Landscaper panic")]
    NoResult,
    /// The path finds several values in random order ([`Class::Random`]).
    #[error("several values are found in no particular order: Landscaper picks one at random")]
    Random,
    /// The key of the export has a part that is not a field name, such as an index. The string describes this part, for
    /// example `an index`. The class of this error is [`Class::Unsupported`].
    #[error("{0} is not allowed in a key, only field names")]
    Unsupported(&'static str),
    /// The path is longer than [`super::MAX_BYTES`].
    #[error("the path is longer than {} bytes", super::MAX_BYTES)]
    TooLong,
    /// The path is too complex: its evaluation takes more than [`super::MAX_STEPS`] steps, or it is nested too deeply.
    /// The same error is reported for the key of an export that has too many fields.
    #[error("the path takes too many steps to be evaluated here")]
    TooComplex,
}

/// An error in a path or key of an export, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathError {
    /// The description of the error.
    pub problem: Problem,
    /// The byte offset of the error in the path or key.
    pub at: usize,
    /// The text of the path or key, as written.
    pub path: String,
}

impl PathError {
    pub(super) fn new(problem: Problem, at: usize) -> Self {
        Self { problem, at, path: String::new() }
    }

    pub(super) fn of(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self.at = self.at.min(path.len());
        self
    }

    /// Returns the class of this error, such as `Class::Parse` for a path with invalid syntax. Tests compare the class
    /// with the class of Landscaper's error for the same path.
    pub fn class(&self) -> Class {
        match self.problem {
            Problem::Syntax(_) => Class::Parse,
            Problem::NotFound(_) | Problem::Mismatch(_) => Class::Evaluation,
            Problem::Count => Class::Count,
            Problem::Empty => Class::Empty,
            Problem::NoResult => Class::Panic,
            Problem::Random => Class::Random,
            Problem::Unsupported(_) => Class::Unsupported,
            Problem::TooLong | Problem::TooComplex => Class::Bound,
        }
    }

    /// Returns advice if the path contains a frequent mistake, such as braces around the path; otherwise `None`.
    pub fn help(&self) -> Option<&'static str> {
        let path = self.path.trim_start_matches('.');
        if path.starts_with('{') {
            return Some("remove the braces: Landscaper adds them itself");
        }
        if path.starts_with(['$', '@', ' ', '[']) {
            return Some(
                "begin with a field name, as in .data.token: the characters before it are read as an empty field name",
            );
        }
        if path.contains("['") && path.contains('.') && matches!(self.problem, Problem::NotFound(_)) {
            return Some("a dot in brackets also separates fields: write a dot in a name as \\.");
        }
        if path.contains("[\"") {
            return Some("write ['name'] with single quotes");
        }
        None
    }

    /// Returns the position of the error in the path, in characters, starting at 1.
    pub fn column(&self) -> usize {
        self.path.char_indices().take_while(|(byte, _)| *byte < self.at).count() + 1
    }
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            Problem::NotFound(name) if name.is_empty() => f.write_str("a field with an empty name is not found")?,
            problem => write!(f, "{problem}")?,
        }
        write!(f, " at character {} of the path {:?}", self.column(), self.path)
    }
}

impl std::error::Error for PathError {}
