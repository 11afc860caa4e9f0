//! The API group of Landscaper.

/// The name of Landscaper's API group.
pub const GROUP: &str = "landscaper.gardener.cloud";
/// The only version of the API group.
pub const VERSION: &str = "v1alpha1";
