//! Annotations that Portcullis reads from objects that contain kustomize trees or kustomization files.

/// The annotation with the path of a folder in a kustomize tree. On a stored Kustomization or Component, it is the path
/// of the object's own folder in the tree of its namespace. On a ConfigMap that contains a tree, it is the path of the
/// folder to build.
pub const PATH_ANNOTATION: &str = "portcullis.dev/path";
