//! Finds objects that Flux does not apply because of their own labels or annotations.
//!
//! Source: `shouldSkipApply` in fluxcd/pkg's `ssa/manager_apply.go`, with the selectors of kustomize-controller's
//! `apply`.

use std::collections::BTreeMap;

use crate::kustomize::identity::ObjectId;
use crate::kustomize::node::Node;
use crate::kustomize::options::CommonMetadata;

/// The API group in the keys of Flux's labels and annotations.
const GROUP: &str = "kustomize.toolkit.fluxcd.io";
/// Labels and annotations that prevent Flux from applying an object. Each tuple contains the key without its prefix,
/// the value in lower case, and whether Flux still creates the object if it does not exist in the cluster.
const EXCLUSIONS: [(&str, &str, bool); 3] =
    [("reconcile", "disabled", false), ("ssa", "ignore", false), ("ssa", "ifnotpresent", true)];

/// An object that Flux does not apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excluded {
    /// The identity of the object.
    pub id: ObjectId,
    /// The label or annotation that excludes the object, such as `kustomize.toolkit.fluxcd.io/reconcile: disabled`.
    pub by: String,
    /// Whether Flux creates the object if it does not exist in the cluster.
    pub is_created: bool,
}

impl Excluded {
    /// Returns an [`Excluded`] for the rendered object `node` if one of its labels or annotations prevents Flux from
    /// applying it. `None` if Flux applies the object. `id` is the identity of the object. `common` contains the labels
    /// and annotations that Flux sets on all objects. They take precedence over those of the object.
    pub(in crate::kustomize) fn of(id: &ObjectId, node: &Node, common: &CommonMetadata) -> Option<Self> {
        let value = |place: &str, common: &BTreeMap<String, String>, key: &str| {
            let own = || node.at_path(&["metadata", place, key]).and_then(Node::text).map(str::to_owned);
            common.get(key).cloned().or_else(own)
        };
        EXCLUSIONS.iter().find_map(|(word, excluded, is_created)| {
            let key = format!("{GROUP}/{word}");
            let values = [value("labels", &common.labels, &key), value("annotations", &common.annotations, &key)];
            let value = values.into_iter().flatten().find(|value| value.to_lowercase() == *excluded)?;
            Some(Self { id: id.clone(), by: format!("{key}: {value}"), is_created: *is_created })
        })
    }
}
