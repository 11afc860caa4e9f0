//! The contract between Landscaper and the deployers: who may write what into a DeployItem, and when.
//!
//! [`machine`] is the life of a DeployItem as a table, [`promises`] what every write of a status must keep. From these
//! come the rules, one file for each, and `explain deployer` with its drawing. The contract's prose describes an older
//! Landscaper; `docs/deployer-contract.md` tells what holds of it.
//!
//! Source: Landscaper's `docs/technical/deployer_contract.md`, held against every write of its code.

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

/// The rules about the contract.
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

/// The finalizer that a deployer takes off once all is uninstalled.
pub const FINALIZER: &str = "finalizer.landscaper.gardener.cloud";
/// Says which type's deployer is to work on a DeployItem.
pub const TYPE_ANNOTATION: &str = "landscaper.gardener.cloud/deployer-type";
/// Says which Target the DeployItem is for.
pub const TARGET_ANNOTATION: &str = "landscaper.gardener.cloud/deployer-target-name";
/// What [`TARGET_ANNOTATION`] says of a DeployItem without a Target.
pub const NO_TARGET: &str = ".noTargetName";

const WRITES: &[Operation] = &[Operation::Create, Operation::Update];
const UPDATE: &[Operation] = &[Operation::Update];
