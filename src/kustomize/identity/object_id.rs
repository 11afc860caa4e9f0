//! The identity of an object in a cluster.

use std::fmt;

use super::cluster_scope::cluster_scoped;

/// The identity of an object in a cluster. The API version is not part of the identity.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId {
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind of the object, such as `Deployment`.
    pub kind: String,
    /// The namespace; empty if the object has none.
    pub namespace: String,
    /// The name (`metadata.name`).
    pub name: String,
}

impl ObjectId {
    /// Returns the location of the object as `namespace/name`, or only the name if there is no namespace.
    pub fn place(&self) -> String {
        if self.namespace.is_empty() { self.name.clone() } else { format!("{}/{}", self.namespace, self.name) }
    }

    /// Returns whether the object has a built-in kind that requires a namespace, but has no namespace. Flux fails to
    /// apply an object without its namespace. Only groups without a dot, such as `apps`, count as built-in.
    pub(in crate::kustomize) fn lacks_namespace(&self) -> bool {
        let is_built_in = !self.group.contains('.');
        is_built_in && self.namespace.is_empty() && cluster_scoped(&self.kind).next().is_none()
    }
}

/// Maximum number of objects that a message names, so that the message stays short. All other objects are only counted.
const MAX_NAMED: usize = 3;

/// Formats a list of objects for a message. The first objects are listed by name. The number of other objects follows,
/// such as `2 more`.
pub(in crate::kustomize) fn listed(ids: &[&ObjectId]) -> String {
    let mut names: Vec<_> = ids.iter().take(MAX_NAMED).map(ToString::to_string).collect();
    if ids.len() > MAX_NAMED {
        names.push(format!("{} more", ids.len() - MAX_NAMED));
    }
    names.join(", ")
}

impl fmt::Display for ObjectId {
    /// Formats the identity, such as `Deployment.apps shop/web`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dot = if self.group.is_empty() { "" } else { "." };
        write!(f, "{}{dot}{} {}", self.kind, self.group, self.place())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_kinds_require_their_namespace() {
        let lacks = |group: &str, kind: &str, namespace: &str| {
            let [group, kind, namespace] = [group, kind, namespace].map(str::to_owned);
            ObjectId { group, kind, namespace, name: "a".to_owned() }.lacks_namespace()
        };
        assert!(lacks("", "ConfigMap", "") && lacks("apps", "Deployment", ""));
        assert!(
            !lacks("", "ConfigMap", "a")
                && !lacks("", "Namespace", "")
                && !lacks("rbac.authorization.k8s.io", "ClusterRole", "")
        );
        assert!(!lacks("example.org", "Database", ""), "it may be cluster-scoped");
    }
}
