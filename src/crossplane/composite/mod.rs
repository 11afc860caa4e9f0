//! Composites, with the Composition and the EnvironmentConfigs that each of them uses.

pub mod claim;
pub mod composition;
pub mod computed;
pub mod labels;
pub mod mutator;
pub mod patch_problem;
pub mod write_mode;
pub mod writes;

/// Annotation of a composite with the patches from its environment. Its value is a JSON object. For the name of each
/// composed resource, the object has a JSON Patch for the base of this resource.
pub const PATCHES_ANNOTATION: &str = "portcullis.dev/environment-patches";
/// The annotation of a composite with the name and resourceVersion of each object from which [`PATCHES_ANNOTATION`] is
/// computed.
pub const SOURCE_ANNOTATION: &str = "portcullis.dev/environment-source";
