//! What can be wrong with a path.

use std::fmt;

/// The kinds of failure that the executed cases tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The path cannot be read.
    Parse,
    /// It can be read, and does not fit the object.
    Evaluation,
    /// There are several template groups, and the first has not exactly one result.
    Count,
    /// There is no template group with a result.
    Empty,
    /// Landscaper panics: there is no result at all.
    Panic,
    /// Landscaper picks a value at random.
    Random,
    /// Not a node that may stand in a key.
    Unsupported,
    /// Beyond a bound of ours.
    Bound,
}

/// What is wrong with a path. Where upstream has words for it, they are upstream's: Landscaper's log has the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It cannot be read.
    #[error("{0}")]
    Syntax(String),
    /// A field is not there.
    #[error("{0} is not found")]
    NotFound(String),
    /// It does not fit the object in another way.
    #[error("{0}")]
    Mismatch(String),
    /// See [`Class::Count`].
    #[error("expected exactly one result")]
    Count,
    /// See [`Class::Empty`].
    #[error("not found")]
    Empty,
    /// See [`Class::Panic`].
    #[error("nothing is found, which makes Landscaper panic")]
    NoResult,
    /// See [`Class::Random`].
    #[error("several values are found in no particular order: Landscaper picks one at random")]
    Random,
    /// See [`Class::Unsupported`].
    #[error("{0} cannot stand in a key, only names of fields")]
    Unsupported(&'static str),
    /// The path is longer than [`super::MAX_BYTES`].
    #[error("the path is longer than {} bytes", super::MAX_BYTES)]
    TooLong,
    /// Finding out takes more than [`super::MAX_STEPS`] steps, or the path is nested too deep.
    #[error("the path takes too many steps to be evaluated here")]
    TooComplex,
}

/// What is wrong with a path, and where in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathError {
    /// What is wrong.
    pub problem: Problem,
    /// Where in the path: the byte at which the part in question begins.
    pub at: usize,
    /// The path.
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

    /// The kind of failure.
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

    /// How to mend it, for the mistakes that are made most.
    pub fn help(&self) -> Option<&'static str> {
        let path = self.path.trim_start_matches('.');
        if path.starts_with('{') {
            return Some("leave the braces out: Landscaper puts them around the path itself");
        }
        if path.starts_with(['$', '@', ' ', '[']) {
            return Some(
                "begin with the name of a field, as in .data.token: what stands before it names an empty field",
            );
        }
        if path.contains("['") && path.contains('.') && matches!(self.problem, Problem::NotFound(_)) {
            return Some("a dot in brackets separates fields all the same: write a dot that belongs to a name as \\.");
        }
        if path.contains("[\"") {
            return Some("write ['name'] with single quotes");
        }
        None
    }

    /// The character of the path, counted from one, that the error is about.
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
