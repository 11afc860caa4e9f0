//! Annotations that Portcullis reads from objects that contain kustomize trees or kustomization files.

/// The name of an annotation whose value is the path of a folder. In a ConfigMap that contains the files of several
/// folders, the annotation selects the folder to build. In a kustomize object (group `kustomize.config.k8s.io`) in the
/// cluster, the annotation names the folder whose kustomization file the object represents.
pub const PATH_ANNOTATION: &str = "portcullis.dev/path";
