//! Crossplane's field paths: how patches and selectors name a value in an object.
//!
//! ```text
//! spec.replicas                          fields
//! spec.items[0].name   spec.items[0]name an element; the dot after a bracket may be left out
//! metadata.annotations[example.org/name] a name with dots, in brackets; quotes around it are taken away
//! metadata.labels['8080']                a name of digits, which in bare brackets would be an index
//! spec.items[*].name                     every element, or every member: only where a value is written
//! ```
//!
//! A name outside of brackets is always a field, also `a.0`. There is no escape character: a key with `]` in it, or with
//! quotes at its ends, cannot be named. The empty path is legal: reading it gives `null`, writing it does nothing.
//!
//! Source: `pkg/fieldpath` of crossplane-runtime v1.17. What it really answers is recorded in
//! `tests/vectors/crossplane/fieldpath_*.json` and `merge_value.json`. Everything here is bounded where upstream is not:
//! upstream's expansion of wildcards never ends on a member that is called `*`, which here is a name like any other.

mod error;
mod expand;
mod get;
mod merge;
mod parse;
mod set;

use std::fmt;

use serde_json::Value;

pub use error::{ParseError, PathError};
pub use merge::MergeOptions;

/// The largest index that is written, which is upstream's: writing `a[1024]` makes a list of 1025 elements.
pub const MAX_INDEX: u32 = 1024;
/// How deep an object may become by writing. It is how deep objects are read from the API server, so nothing deeper can
/// be a part of one.
pub const MAX_DEPTH: usize = crate::admission::json::MAX_DEPTH;
/// How many places the wildcards of one path may stand for. An object has room for more, but nobody means them.
pub const MAX_EXPANSIONS: usize = 10_000;

/// A path that was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Path {
    segments: Vec<Segment>,
}

/// One step of a [`Path`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Segment {
    /// A member of an object.
    Field(String),
    /// An element of a list, counted from zero.
    Index(u32),
}

impl Path {
    /// Reads a path.
    ///
    /// # Errors
    /// What is wrong with it, and at which byte.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Ok(Self { segments: parse::segments(text)? })
    }

    /// Reads a path where reading or writing it is what matters: the error names the path.
    ///
    /// # Errors
    /// [`PathError::Parse`].
    pub fn named(text: &str) -> Result<Self, PathError> {
        Self::parse(text).map_err(|error| PathError::Parse { path: text.to_owned(), error })
    }

    /// The path with these steps.
    pub fn of(segments: &[Segment]) -> Self {
        Self { segments: segments.into() }
    }

    /// The steps from the object to the value.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Whether the path names nothing at all.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Whether a step is `*`, in brackets or not.
    pub fn has_wildcard(&self) -> bool {
        self.segments.iter().any(Segment::is_wildcard)
    }

    /// The largest index among the steps.
    pub fn highest_index(&self) -> Option<u32> {
        let index = |segment: &Segment| if let Segment::Index(index) = segment { Some(*index) } else { None };
        self.segments.iter().filter_map(index).max()
    }

    /// The value in an object. Wildcards are not followed: `*` is read as a member of that name.
    ///
    /// # Errors
    /// What is missing (see [`PathError::is_not_found`]), or what is something else than the path needs.
    pub fn get<'v>(&self, object: &'v Value) -> Result<&'v Value, PathError> {
        get::get(&self.segments, object)
    }

    /// Puts a value into an object. What is missing on the way is made, lists are filled up with `null`.
    ///
    /// # Errors
    /// Where something stands in the way, an index is beyond [`MAX_INDEX`], or the object would be deeper than
    /// [`MAX_DEPTH`]. The object is then as it was.
    pub fn set(&self, object: &mut Value, value: Value) -> Result<(), PathError> {
        set::set(&self.segments, object, value)
    }

    /// Merges a value with what stands there; without options it takes its place.
    ///
    /// # Errors
    /// As [`Path::set`] and [`Path::get`], and where a list would be appended to something that is none.
    pub fn merge(&self, object: &mut Value, value: Value, options: Option<MergeOptions>) -> Result<(), PathError> {
        merge::merge(self, object, value, options)
    }

    /// The paths in an object that this one with its wildcards stands for; those that lead nowhere are left out.
    /// The members of an object come in the order of their names.
    ///
    /// # Errors
    /// Where a wildcard or a step stands on something that has no elements or members, or there are more than
    /// [`MAX_EXPANSIONS`].
    pub fn expand(&self, object: &Value) -> Result<Vec<Self>, PathError> {
        let paths = expand::expand(&self.segments, object)?;
        Ok(paths.into_iter().map(|segments| Self { segments }).collect())
    }
}

impl Segment {
    /// Whether this step stands for every element or member.
    pub fn is_wildcard(&self) -> bool {
        matches!(self, Self::Field(name) if name == "*")
    }
}

/// The canonical spelling. It cannot always be read back: see the module's words on what cannot be named.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text_of(&self.segments))
    }
}

/// How a row of steps is spelled.
fn text_of(segments: &[Segment]) -> String {
    let mut text = String::new();
    for (at, segment) in segments.iter().enumerate() {
        match segment {
            Segment::Index(index) => text.push_str(&format!("[{index}]")),
            Segment::Field(name) if name == "*" || name.contains('.') => text.push_str(&format!("[{name}]")),
            Segment::Field(name) => {
                text.push_str(if at == 0 { "" } else { "." });
                text.push_str(name);
            }
        }
    }
    text
}
