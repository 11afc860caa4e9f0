//! The identity of an object: group, version, kind, name and namespace. This module also determines which kinds are
//! cluster-scoped, because objects of these kinds are compared without their namespaces.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::cluster_scope;
use super::gvk::Gvk;

/// The placeholder that kustomize uses as the namespace when it compares cluster-scoped objects.
const NO_NAMESPACE: &str = "_non_namespaceable_";
/// The namespace that kustomize assumes for namespaced objects without a namespace when it compares objects.
const DEFAULT_NAMESPACE: &str = "default";

/// The data that determines whether a kind is namespaced or cluster-scoped: the built-in schema and, if there is one, a
/// custom schema.
#[derive(Debug, Clone, Default)]
pub(in crate::kustomize) struct Scope {
    /// apiVersion and kind of the cluster-scoped kinds in a custom schema; `None` without a custom schema.
    pub custom: Option<Arc<BTreeSet<(String, String)>>>,
}

impl Scope {
    /// Returns whether a kind is cluster-scoped according to the built-in schema or the custom schema.
    pub(in crate::kustomize) fn is_cluster(&self, gvk: &Gvk<'_>) -> bool {
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

    /// Returns the parts that are compared to find equal identities: group, version and kind, the name, and the
    /// effective namespace.
    pub(in crate::kustomize) fn key(&self) -> (Gvk<'r>, &'r str, &'r str) {
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
