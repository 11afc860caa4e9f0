//! Annotations that Portcullis reads from objects that contain kustomize trees or kustomization files.

/// The annotation with a folder: on a stored Kustomization or Component, its folder in the tree of its namespace; on a
/// ConfigMap with a tree, the folder to build.
pub const PATH_ANNOTATION: &str = "portcullis.dev/path";
