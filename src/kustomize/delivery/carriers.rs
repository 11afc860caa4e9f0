//! Recognizes ConfigMaps and Secrets that contain the files of a kustomization.

use serde_json::Value;

use super::Narrowed;
use crate::admission::Metadata;
use crate::rule::Match;

/// The label that marks a ConfigMap whose keys contain a kustomize tree. Its value names the system that builds the
/// tree, such as `flux`.
pub(super) const LABEL: &str = "portcullis.dev/kustomize-tree";

/// Match conditions that select ConfigMaps and Secrets with the files of a kustomization. The API server does not send
/// other ConfigMaps and Secrets to the webhook.
pub(super) static NARROWED: Narrowed = Narrowed {
    webhook: "trees.portcullis.dev",
    reason: "Only ConfigMaps and Secrets that are marked as kustomize trees: others are not sent to the webhook.",
    when: &[
        "has(object.metadata.labels) && 'portcullis.dev/kustomize-tree' in object.metadata.labels",
        "has(object.binaryData) && 'kustomize.tar.gz' in object.binaryData",
        "request.resource.resource == 'secrets' && has(object.data) && 'kustomize.tar.gz' in object.data",
    ],
};

/// Returns a request matcher for creations and updates of a resource of the core group.
pub(super) const fn written(plural: &'static str, kind: &'static str) -> Match {
    Match::create_or_update("", &["v1"], plural, kind)
}

/// Returns the value of the label `portcullis.dev/kustomize-tree`. A ConfigMap has this label if it contains the files
/// of a kustomization. The value names the tool that builds these files, such as `flux`.
pub(super) fn label(object: &Value) -> Option<&str> {
    Metadata::of(object).label(LABEL)
}
