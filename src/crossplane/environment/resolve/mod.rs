//! Computes the results of transforms.
//!
//! Source: `composition_transforms.go` of Crossplane 1.17.6 and `transforms.go` of function-patch-and-transform 0.10.8.
//! Their behavior is recorded in `tests/vectors/crossplane/transforms.json`.

mod arithmetic;
mod convert;
mod lookup;
mod text;

use super::{Profile, Transform, TransformType};
use crate::go::Any;

/// The error of a failed transform. It has the same message as in Crossplane or function-patch-and-transform.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TransformError {
    message: String,
}

impl TransformError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }

    fn within(self, what: &str) -> Self {
        Self { message: format!("{what}: {}", self.message) }
    }
}

impl From<crate::go::fmt::TooLong> for TransformError {
    fn from(error: crate::go::fmt::TooLong) -> Self {
        Self::new(error.to_string())
    }
}

impl Transform {
    /// Applies this transform to the value `input` and returns the result. `profile` selects the implementation whose
    /// results and error messages apply: Crossplane, or function-patch-and-transform.
    ///
    /// # Errors
    /// If the transform fails. Portcullis adds two errors: a negative capture group, which causes a panic in
    /// Crossplane, and a text of more than [`crate::go::fmt::MAX_TEXT`] bytes.
    pub fn resolve(&self, input: &Any, profile: Profile) -> Result<Any, TransformError> {
        let name = self.transform_type.as_str();
        let result = match &self.transform_type {
            TransformType::Math => self.math.as_ref().map(|math| math.resolve(input, profile)),
            TransformType::Map => self.map.as_ref().map(|map| lookup::resolve_map(map, input)),
            TransformType::Match => self.matching.as_ref().map(|matching| matching.resolve(input)),
            TransformType::String => self.string.as_ref().map(|string| string.resolve(input, profile)),
            TransformType::Convert => self.convert.as_ref().map(|convert| convert.resolve(input, profile)),
            TransformType::Other(_) => {
                return Err(TransformError::new(format!("transform type {name} is not supported")));
            }
        };
        let missing = || Err(TransformError::new(format!("given transform type {name} requires configuration")));
        result.map_or_else(missing, |result| {
            result.map_err(|error| error.within(&format!("{name} transform could not resolve")))
        })
    }
}
