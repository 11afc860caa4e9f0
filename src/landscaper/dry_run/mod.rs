//! Dry runs: Installations that are processed as usual, while nothing is deployed.
//!
//! A root Installation is annotated with `landscaper.gardener.cloud/dry-run: "true"`; everything below it follows. Where
//! DeployItems export values, a DryRunConfiguration in the same namespace stands in for the objects on the target.
//! Landscaper itself knows none of this: propagation, the checks and the run are ours.

pub mod export;
pub mod fragment;

/// Says whether an object is in dry run: only `"true"` does.
pub const DRY_RUN_ANNOTATION: &str = "landscaper.gardener.cloud/dry-run";
/// Names the DryRunConfiguration, in the same namespace.
pub const CONFIGURATION_ANNOTATION: &str = "landscaper.gardener.cloud/dry-run-configuration";
