//! The annotations of Portcullis on objects with trees.

/// The annotation with the folder of an object in its tree: of a stored Kustomization, or the folder to build in the
/// tree of a ConfigMap.
pub const PATH_ANNOTATION: &str = "portcullis.dev/path";
