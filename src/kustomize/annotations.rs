//! Annotations that Portcullis reads from objects that contain kustomize trees or kustomization files.

/// The name of an annotation that contains the path of a folder with a kustomization file. On a Kustomization or
/// Component of kustomize that is stored in the cluster, it is the folder of this object, which serves as the
/// kustomization file. On a ConfigMap that contains the files of several folders, it is the folder to build.
pub const PATH_ANNOTATION: &str = "portcullis.dev/path";
