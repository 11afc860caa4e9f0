//! The settings of a build that affect only its output.

/// The order of the objects in the output, unless the kustomization sets `sortOptions`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reorder {
    /// Objects are sorted by kind, namespace and name. This is the default of `kustomize build`.
    #[default]
    Legacy,
    /// Objects keep the order in which they are loaded.
    None,
}

/// The settings of a build that affect only its output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The order of the objects in the output (`--reorder`).
    pub reorder: Reorder,
    /// Whether the objects get the label `app.kubernetes.io/managed-by` (`--enable-managedby-label`).
    pub managed_by_label: bool,
}
