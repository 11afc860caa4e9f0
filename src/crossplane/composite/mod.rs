//! Composites, with the Composition and the EnvironmentConfigs that each of them uses.

pub mod claim;
pub mod composition;
pub mod computed;
pub mod labels;
pub mod mutator;
pub mod patch_problem;
pub mod write_mode;
pub mod writes;

/// Annotation of a composite that contains the changes that the environment makes to the composed resources. The value
/// is a JSON object. Each key is the name of a composed resource, or its index if it has no name. Each value is a JSON
/// Patch for the base of this resource.
pub const PATCHES_ANNOTATION: &str = "portcullis.dev/environment-patches";
/// Annotation of a composite that lists the objects from which [`PATCHES_ANNOTATION`] is computed. It contains the name
/// and resourceVersion of each object.
pub const SOURCE_ANNOTATION: &str = "portcullis.dev/environment-source";
