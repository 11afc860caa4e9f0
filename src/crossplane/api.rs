//! The API group of Crossplane's own kinds.

/// The API group of Compositions, CompositeResourceDefinitions and EnvironmentConfigs.
pub const GROUP: &str = "apiextensions.crossplane.io";
