//! Annotations that Portcullis reads from objects that contain kustomize trees or kustomization files.

/// The annotation with the path of a folder. On a stored Kustomization or Component, it is the object's own folder in
/// the kustomize tree of its namespace; on a ConfigMap that contains a kustomize tree, it is the folder to build.
pub const PATH_ANNOTATION: &str = "portcullis.dev/path";
