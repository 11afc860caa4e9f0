//! The contract between Landscaper and the deployers: who may write which fields of a DeployItem, and when.
//!
//! [`machine`] is the state machine of a DeployItem, and [`requirements`] are the conditions that every status write
//! must meet. The rules and the output of `portcullis explain deployer` are derived from these two modules. The text of
//! Landscaper's contract describes an older version of Landscaper; `docs/deployer-contract.md` lists the differences.
//!
//! Source: Landscaper's `docs/technical/deployer_contract.md`, compared with every status write in its code.

pub mod configuration;
pub mod explain;
pub(super) mod finding;
pub mod machine;
pub mod phase;
pub(super) mod provider;
pub mod requirements;
pub mod responsibility;
pub mod selector;
pub mod status;

/// The finalizer that a deployer removes after it has uninstalled everything.
pub const FINALIZER: &str = "finalizer.landscaper.gardener.cloud";
/// The value of [`TARGET_ANNOTATION`](super::annotations::TARGET_ANNOTATION) for a DeployItem without a Target.
pub const NO_TARGET: &str = ".noTargetName";
