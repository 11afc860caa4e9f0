//! Crossplane's field paths, with which patches and selectors name a value in an object.
//!
//! Examples of field paths:
//!
//! - `spec.replicas` names a field of a field.
//! - `spec.items[0].name` names a field of the first list element. The dot after a bracket may be omitted.
//! - `metadata.annotations[example.org/name]` names a field whose name contains dots. Quotes around the name in the
//!   brackets are removed.
//! - `metadata.labels['8080']` names a field whose name consists of digits. Without quotes, it would be a list index.
//! - `spec.items[*].name` names a field of every list element, or of every member of an object. Only writing accepts a
//!   path with a wildcard.
//!
//! A name outside of brackets is always a field, also in `a.0`. There is no escape character. So a path cannot name a
//! key that contains `]`, or that begins and ends with quotes. The empty path is valid. Reading it gives `null`, and
//! writing it does nothing.
//!
//! Source: `pkg/fieldpath` of crossplane-runtime v1.17. Its recorded results are in
//! `tests/vectors/crossplane/fieldpath_*.json` and `merge_value.json`. Unlike upstream, this module limits the depth of
//! objects and the number of expanded paths. Upstream's expansion of wildcards does not terminate if a member has the
//! name `*`. In this module, `*` is an ordinary member name.

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

/// Maximum index of a list element that can be written, as in Crossplane. Writing `a[1024]` creates a list of 1025
/// elements.
pub const MAX_INDEX: u32 = 1024;
/// Maximum nesting depth of an object after a value is written to a field path in it. It equals the maximum depth of
/// the JSON that Portcullis parses.
pub const MAX_DEPTH: usize = crate::admission::json::MAX_DEPTH;
/// Maximum number of paths that the wildcards of one path may expand to. The limit bounds the memory, because each
/// wildcard multiplies the number of paths.
pub const MAX_EXPANSIONS: usize = 10_000;

/// A parsed field path, such as `spec.items[0].name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Path {
    segments: Vec<Segment>,
}

/// A segment of a [`Path`]: a field name or a list index.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Segment {
    /// The name of a field of an object.
    Field(String),
    /// An element of a list, counted from zero.
    Index(u32),
}

impl Path {
    /// Parses a field path, such as `spec.items[0].name`.
    ///
    /// # Errors
    /// The syntax error with its byte offset.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Ok(Self { segments: parse::segments(text)? })
    }

    /// Parses a path like [`Path::parse`], but returns an error that contains the text of the path.
    pub fn named(text: &str) -> Result<Self, PathError> {
        Self::parse(text).map_err(|error| PathError::Parse { path: text.to_owned(), error })
    }

    /// Creates a path from its segments.
    pub fn of(segments: &[Segment]) -> Self {
        Self { segments: segments.into() }
    }

    /// Returns the segments of the path, from the first to the last.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Returns whether the path is empty.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Returns whether any segment is `*`, with or without brackets.
    pub fn has_wildcard(&self) -> bool {
        self.segments.iter().any(Segment::is_wildcard)
    }

    /// Returns the largest index in the path. `None` if the path has no index.
    pub fn highest_index(&self) -> Option<u32> {
        let index = |segment: &Segment| if let Segment::Index(index) = segment { Some(*index) } else { None };
        self.segments.iter().filter_map(index).max()
    }

    /// Returns the value at this path in an object. Wildcards are not expanded: `*` stands for a member with the name
    /// `*`.
    ///
    /// # Errors
    /// If the value is missing (see [`PathError::is_not_found`]) or a parent has the wrong type.
    pub fn get<'v>(&self, object: &'v Value) -> Result<&'v Value, PathError> {
        get::get(&self.segments, object)
    }

    /// Writes a value into an object at this path. Creates missing parents, and fills lists up to an index with `null`.
    ///
    /// # Errors
    /// If a parent has the wrong type, an index is above [`MAX_INDEX`], or the object would be deeper than
    /// [`MAX_DEPTH`]. In case of an error, the object is unchanged.
    pub fn set(&self, object: &mut Value, value: Value) -> Result<(), PathError> {
        set::set(&self.segments, object, value)
    }

    /// Merges a value with the existing value at the path. If `options` is `None`, replaces the existing value.
    ///
    /// # Errors
    /// If [`Path::set`] fails at this path, or if a list would be appended to a value that is not a list. It is not an
    /// error if there is no value at the path yet.
    pub fn merge(&self, object: &mut Value, value: Value, options: Option<MergeOptions>) -> Result<(), PathError> {
        merge::merge(self, object, value, options)
    }

    /// Returns the paths of all existing values in an object that match this path. In each returned path, an index or a
    /// member name replaces each wildcard (`*`). The paths follow the order of list elements. Members are sorted by
    /// name.
    ///
    /// # Errors
    /// If a segment does not fit the type of the value, such as an index on an object, or a wildcard on a string or
    /// `null`. If there are more than [`MAX_EXPANSIONS`] paths.
    pub fn expand(&self, object: &Value) -> Result<Vec<Self>, PathError> {
        let paths = expand::expand(&self.segments, object)?;
        Ok(paths.into_iter().map(|segments| Self { segments }).collect())
    }
}

impl Segment {
    /// Returns whether this segment is a wildcard for all elements or members.
    pub fn is_wildcard(&self) -> bool {
        matches!(self, Self::Field(name) if name == "*")
    }
}

/// Formats a path in its canonical spelling. [`Path::parse`] returns the same path for this text, unless a name in the
/// path cannot be written in a field path. The documentation of the module describes such names.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text_of(&self.segments))
    }
}

/// Returns the canonical text of a path with these segments, such as `spec.list[0]`.
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
