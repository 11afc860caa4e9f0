//! Reads the annotations that control the dry run of an object.

use serde_json::Value;

use super::annotations::{self, CONFIGURATION_ANNOTATION, DRY_RUN_ANNOTATION};
use crate::admission::FieldPath;

/// The values of the dry-run annotations of an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DryRunAnnotations<'v> {
    /// The value of the annotation [`DRY_RUN_ANNOTATION`], such as `true`; `None` if the annotation is missing.
    pub dry_run: Option<&'v str>,
    /// The value of the annotation [`CONFIGURATION_ANNOTATION`]: the name of a DryRunConfiguration; `None` if the
    /// annotation is missing.
    pub configuration: Option<&'v str>,
}

impl<'v> DryRunAnnotations<'v> {
    /// Reads the dry-run annotations of an object.
    pub fn of(object: &'v Value) -> Self {
        let text = |key| annotations::text(object, key);
        Self { dry_run: text(DRY_RUN_ANNOTATION), configuration: text(CONFIGURATION_ANNOTATION) }
    }

    /// Reports whether the object is in dry run. Only the value `"true"` counts. Landscaper treats its own annotations
    /// in the same way.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run == Some("true")
    }

    /// Returns the dry-run annotations that other objects inherit from an object with these annotations. If the object
    /// is in dry run, other objects inherit the same annotations. Otherwise, they inherit nothing, so both fields of
    /// the result are `None`.
    #[must_use]
    pub fn inherited(self) -> Self {
        if self.is_dry_run() { self } else { Self::default() }
    }
}

/// Returns the field path of the annotation `key`.
pub(in crate::landscaper) fn annotation(key: &str) -> FieldPath {
    FieldPath::of(["metadata", "annotations", key])
}
