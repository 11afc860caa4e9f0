//! Expands a path with wildcards to all matching paths that exist in an object.

use serde_json::Value;

use super::error::{ExpandError, PathError};
use super::get::step;
use super::{MAX_EXPANSIONS, Segment, text_of};

/// A path whose first `at` segments were followed in an object. Wildcards in these segments are already replaced by
/// field names or indexes.
struct PartialPath<'v> {
    segments: Vec<Segment>,
    /// The number of segments that were already followed, from the start of the path. They lead to `value`.
    at: usize,
    value: &'v Value,
    /// The positions of the replaced wildcards, as indexes in `segments`.
    wildcards: Vec<usize>,
}

/// Replaces the wildcards in `segments`, and returns all resulting paths that exist in `object`. Fails if a value on a
/// path has the wrong type, or if there are too many paths.
pub(super) fn expand(segments: &[Segment], object: &Value) -> Result<Vec<Vec<Segment>>, PathError> {
    let mut found = Vec::new();
    let mut open = vec![PartialPath { segments: segments.to_vec(), at: 0, value: object, wildcards: Vec::new() }];
    while let Some(path) = open.pop() {
        match path.follow().map_err(|(cause, path)| path.failed(segments, cause))? {
            Outcome::Reached(segments) => found.push(segments),
            Outcome::Missing => {}
            Outcome::Many(path) => {
                let paths = path.replaced().map_err(|(cause, path)| path.failed(segments, cause))?;
                open.extend(paths.into_iter().rev());
            }
        }
        if open.len() + found.len() > MAX_EXPANSIONS {
            let stages = vec![text_of(segments)];
            return Err(PathError::Expand(ExpandError { stages, cause: Box::new(PathError::TooManyExpansions) }));
        }
    }
    Ok(found)
}

/// The result of following a path to its end or to its next wildcard.
enum Outcome<'v> {
    /// The path has no further wildcard and leads to a value.
    Reached(Vec<Segment>),
    /// The path does not exist in the object.
    Missing,
    /// The next segment of the path is a wildcard.
    Many(PartialPath<'v>),
}

type Failed<'v> = (PathError, PartialPath<'v>);

impl<'v> PartialPath<'v> {
    /// Follows the path to its end or to its next wildcard. Fails if a value on the path has the wrong type.
    fn follow(mut self) -> Result<Outcome<'v>, Failed<'v>> {
        while let Some(segment) = self.segments.get(self.at) {
            if segment.is_wildcard() {
                return Ok(Outcome::Many(self));
            }
            match step(&self.segments, self.at, self.value) {
                Ok(value) => self.value = value,
                Err(error) if error.is_not_found() => return Ok(Outcome::Missing),
                Err(error) => return Err((error, self)),
            }
            self.at += 1;
        }
        Ok(Outcome::Reached(self.segments))
    }

    /// Returns one path for each element that the next wildcard matches. In each path, the index or the field name of
    /// the element replaces the wildcard.
    ///
    /// Fails if the value at the wildcard is neither a list nor an object, or if it has more than `MAX_EXPANSIONS`
    /// elements.
    fn replaced(self) -> Result<Vec<Self>, Failed<'v>> {
        let at = || text_of(&self.segments[..self.at]);
        let too_many = |length: usize| (length > MAX_EXPANSIONS).then_some(PathError::TooManyExpansions);
        let error = match self.value {
            Value::Array(items) => too_many(items.len()),
            Value::Object(members) => too_many(members.len()),
            Value::Null => Some(PathError::WildcardOnNull { at: at() }),
            _ => Some(PathError::WildcardOnScalar { at: at() }),
        };
        if let Some(error) = error {
            return Err((error, self));
        }
        Ok(self.children().map(|(segment, value)| self.with(segment, value)).collect())
    }

    fn children(&self) -> Box<dyn Iterator<Item = (Segment, &'v Value)> + 'v> {
        match self.value {
            Value::Array(items) => Box::new((0..).map(Segment::Index).zip(items)),
            Value::Object(members) => {
                Box::new(members.iter().map(|(name, value)| (Segment::Field(name.clone()), value)))
            }
            _ => Box::new(std::iter::empty()),
        }
    }

    fn with(&self, segment: Segment, value: &'v Value) -> Self {
        let mut segments = self.segments.clone();
        segments[self.at] = segment;
        let wildcards = [&self.wildcards[..], &[self.at]].concat();
        Self { segments, at: self.at + 1, value, wildcards }
    }

    /// Creates the error for the path `original` if not all of its wildcards can be replaced. `cause` is the reason.
    /// The error lists the path before and after each successful replacement. For example, if the second wildcard of
    /// `a[*].b[*]` cannot be replaced, it lists `a[*].b[*]` and `a[0].b[*]`.
    fn failed(&self, original: &[Segment], cause: PathError) -> PathError {
        let mut stage = original.to_vec();
        let mut stages = vec![text_of(&stage)];
        for &at in &self.wildcards {
            stage[at] = self.segments[at].clone();
            stages.push(text_of(&stage));
        }
        PathError::Expand(ExpandError { stages, cause: Box::new(cause) })
    }
}
