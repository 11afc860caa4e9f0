//! Composites: the Composition and the EnvironmentConfigs that one uses.

pub mod claim;
pub mod composition;
pub mod computed;
pub mod labels;
pub mod mutator;
pub mod patch_problem;
pub mod write_mode;
pub mod writes;

/// The annotation with the patches from the environment: a JSON Patch of the base of each composed resource, by name.
pub const PATCHES_ANNOTATION: &str = "portcullis.dev/environment-patches";
/// The annotation with the inputs of [`PATCHES_ANNOTATION`], by name and version.
pub const SOURCE_ANNOTATION: &str = "portcullis.dev/environment-source";
