//! The identity of an object: group, version, kind, name and namespace.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::cluster_scope;

/// The namespace that kustomize assigns to cluster-scoped objects.
const NO_NAMESPACE: &str = "_non_namespaceable_";
/// The default namespace of objects that name no namespace.
const DEFAULT_NAMESPACE: &str = "default";

/// Group, version and kind. In a selector, an empty part matches everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(in crate::kustomize) struct Gvk<'r> {
    /// The API group; empty for the core group.
    pub group: &'r str,
    pub version: &'r str,
    pub kind: &'r str,
}

impl<'r> Gvk<'r> {
    /// Creates group, version and kind from a kind and an apiVersion. Splits the apiVersion at its first slash.
    pub(super) fn new(api_version: &'r str, kind: &'r str) -> Self {
        let (group, version) = split_at_slash(api_version).unwrap_or(("", api_version));
        Self { group, version, kind }
    }

    /// Returns whether a selector matches this group, version and kind. An empty part of the selector matches
    /// everything.
    pub(super) fn is_selected(&self, selector: &Gvk<'_>) -> bool {
        let selects = |wanted: &str, own: &str| wanted.is_empty() || wanted == own;
        selects(selector.kind, self.kind)
            && selects(selector.group, self.group)
            && selects(selector.version, self.version)
    }

    fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// Splits a text at its first slash. For short texts, this is faster than `str::split_once`.
pub(super) fn split_at_slash(text: &str) -> Option<(&str, &str)> {
    let at = text.bytes().position(|byte| byte == b'/')?;
    Some((&text[..at], &text[at + 1..]))
}

/// The scope of kinds, namespaced or cluster-scoped. The built-in schema and a custom schema determine the scope.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    /// apiVersion and kind of the cluster-scoped kinds in a custom schema; `None` without a custom schema.
    pub custom: Option<Arc<BTreeSet<(String, String)>>>,
}

impl Scope {
    /// Returns whether a kind is known to be cluster-scoped.
    pub(super) fn is_cluster(&self, gvk: &Gvk<'_>) -> bool {
        let mut known = cluster_scope::cluster_scoped(gvk.kind);
        known.any(|api_version| Gvk::new(api_version, gvk.kind) == *gvk)
            || self.custom.as_ref().is_some_and(|custom| custom.contains(&(gvk.api_version(), gvk.kind.to_owned())))
    }
}

/// The current or a previous identity of an object.
#[derive(Debug, Clone, Copy)]
pub(in crate::kustomize) struct Id<'r> {
    /// The group, version and kind of the object.
    pub gvk: Gvk<'r>,
    pub name: &'r str,
    /// The namespace as written in the object; empty if it has none.
    pub namespace: &'r str,
    /// Whether the kind is cluster-scoped.
    pub is_cluster: bool,
}

impl<'r> Id<'r> {
    /// Returns the namespace for comparisons. This is `default` if the namespace is empty, and a placeholder for
    /// cluster-scoped objects.
    pub(in crate::kustomize) fn effective_namespace(&self) -> &'r str {
        match self.namespace {
            _ if self.is_cluster => NO_NAMESPACE,
            "" => DEFAULT_NAMESPACE,
            namespace => namespace,
        }
    }

    /// Describes the object for messages, such as `Service web in shop`.
    pub(in crate::kustomize) fn words(&self) -> String {
        let namespace = if self.namespace.is_empty() { String::new() } else { format!(" in {}", self.namespace) };
        format!("{} {}{namespace}", self.gvk.kind, self.name)
    }

    /// Returns the parts that are compared to find equal identities. The effective namespace is one of these parts.
    pub(super) fn key(&self) -> (Gvk<'r>, &'r str, &'r str) {
        (self.gvk, self.name, self.effective_namespace())
    }
}

impl PartialEq for Id<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl fmt::Display for Id<'_> {
    /// Formats the identity as in kustomize's errors: `Deployment.v1.apps/web.[noNs]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn or<'t>(text: &'t str, none: &'t str) -> &'t str {
            if text.is_empty() { none } else { text }
        }
        write!(
            f,
            "{}.{}.{}/{}.{}",
            or(self.gvk.kind, "[noKind]"),
            or(self.gvk.version, "[noVer]"),
            or(self.gvk.group, "[noGrp]"),
            or(self.name, "[noName]"),
            or(self.namespace, "[noNs]")
        )
    }
}
