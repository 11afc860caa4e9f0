//! Annotations that Portcullis reads from objects that contain kustomize trees or kustomization files.

/// The name of an annotation whose value is the path of a folder. On a ConfigMap that contains the files of several
/// folders, it is the folder to build. On a kustomize object (group `kustomize.config.k8s.io`) in the cluster, it is
/// the folder whose kustomization file this object represents.
pub const PATH_ANNOTATION: &str = "portcullis.dev/path";
