//! RBAC permissions that controllers need.

/// An RBAC permission: one rule of a ClusterRole.
#[derive(Debug)]
pub struct Permission {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// Plural names of resources. A name may contain a subresource, such as `deployitems/status`.
    pub resources: &'static [&'static str],
    /// Names of the objects. Empty for all objects. `create`, `list` and `watch` cannot be restricted by name.
    pub names: &'static [&'static str],
    /// Allowed verbs, such as `patch`.
    pub verbs: &'static [&'static str],
}
