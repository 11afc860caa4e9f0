//! Permissions in the cluster.

/// A permission in the cluster.
#[derive(Debug)]
pub struct Permission {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// Plural names, with their subresource: `deployitems/status`.
    pub resources: &'static [&'static str],
    /// Names of the objects; empty for all. `create`, `list` and `watch` cannot be restricted by name.
    pub names: &'static [&'static str],
    /// Verbs.
    pub verbs: &'static [&'static str],
}
