//! The contract between Landscaper and the deployers: who may write which fields of a DeployItem, and when.
//!
//! [`machine`] is the state machine of a DeployItem, and [`promises`] are the conditions that every status write must
//! meet. The rules and `portcullis explain deployer` are derived from these. The text of the contract describes an
//! older Landscaper; `docs/deployer-contract.md` lists the differences.
//!
//! Source: Landscaper's `docs/technical/deployer_contract.md`, compared with every status write in its code.

pub mod configuration;
mod dp001;
mod dp002;
mod dp003;
mod dp004;
mod dp005;
mod dp006;
mod dp007;
mod dp008;
mod dp009;
mod dp010;
mod dp011;
mod dp012;
mod dp013;
mod dp014;
pub mod explain;
mod finding;
pub mod machine;
pub mod phase;
pub mod promises;
mod provider;
pub mod responsibility;
pub mod selector;
pub mod status;

use crate::admission::Operation;
use crate::rule::Rule;

/// The rules of the deployer contract.
pub static RULES: &[&Rule] = &[
    &dp001::RULE,
    &dp002::RULE,
    &dp003::RULE,
    &dp004::RULE,
    &dp005::RULE,
    &dp006::RULE,
    &dp007::RULE,
    &dp008::RULE,
    &dp009::RULE,
    &dp010::RULE,
    &dp011::RULE,
    &dp012::RULE,
    &dp013::RULE,
    &dp014::RULE,
];

/// The finalizer that a deployer removes when everything is uninstalled.
pub const FINALIZER: &str = "finalizer.landscaper.gardener.cloud";
/// The annotation with the type of the deployer that must process a DeployItem.
pub const TYPE_ANNOTATION: &str = "landscaper.gardener.cloud/deployer-type";
/// The annotation with the name of the Target of a DeployItem.
pub const TARGET_ANNOTATION: &str = "landscaper.gardener.cloud/deployer-target-name";
/// The value of [`TARGET_ANNOTATION`] for a DeployItem without a Target.
pub const NO_TARGET: &str = ".noTargetName";

const WRITES: &[Operation] = &[Operation::Create, Operation::Update];
const UPDATE: &[Operation] = &[Operation::Update];
