//! Creates findings about status writes that violate a requirement of Landscaper's deployer contract.

use super::configuration::Deployers;
use super::promises::Promise;
use super::status::{Change, Job};
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::rule::Rule;

/// Checks a write of a DeployItem's status against a requirement of Landscaper's deployer contract. Returns a finding
/// if the write violates the requirement.
pub(in crate::landscaper) fn unless_kept(
    rule: &'static Rule,
    promise: &Promise,
    (request, view): (&Request<'_>, &View<'_>),
    describe: impl Fn(&Change<'_>) -> Violation,
) -> Vec<Finding> {
    let change = Change::of(request.old_object(), request.object());
    if (promise.is_kept)(&change) {
        return Vec::new();
    }
    let Violation { field, what, correct } = describe(&change);
    let (before, after) = (change.old.summary(), change.new.summary());
    let message = format!("{what}; before: {before}; now: {after}");
    let mut finding = rule.finding(field, message).found(after).allowed(promise.sentence).help(correct);
    finding.level = level(rule, promise, &change, request, view);
    vec![finding]
}

/// A violation of a requirement of Landscaper's deployer contract by a status write, described for a finding.
pub(in crate::landscaper) struct Violation {
    /// The field path of the value that violates the requirement of the deployer contract.
    pub(in crate::landscaper) field: FieldPath,
    /// How the status write violates the requirement of the deployer contract, in a few words.
    pub(in crate::landscaper) what: String,
    /// A help text that describes a write that meets the requirement of the deployer contract.
    pub(in crate::landscaper) correct: String,
}

/// Returns the field path of a field of `status`.
pub(in crate::landscaper) fn field(name: &str) -> FieldPath {
    FieldPath::of(["status", name])
}

/// Returns the path of the field with the effective phase: `status.deployItemPhase` if it is set, or `status.phase`.
pub(in crate::landscaper) fn phase_field(request: &Request<'_>) -> FieldPath {
    let older = request.object().pointer("/status/deployItemPhase").and_then(|phase| phase.as_str());
    field(if older.is_some_and(|phase| !phase.is_empty()) { "deployItemPhase" } else { "phase" })
}

/// Returns the level of a finding about a violated requirement of Landscaper's deployer contract.
///
/// If the old status violates the requirement in the same way, the level is at most `warn`, so that other fields can
/// still be written. For a restore by a configured restorer, the level is `audit`.
fn level(rule: &Rule, promise: &Promise, change: &Change<'_>, request: &Request<'_>, view: &View<'_>) -> Level {
    let before = Change { old: change.old, new: change.old };
    let parts = |status: &super::status::Status<'_>| format!("{}{:?}", status.summary(), status.reconciled);
    let is_old = !(promise.is_kept)(&before) && parts(&change.old) == parts(&change.new);
    if Deployers::of(view).is_some_and(|deployers| is_restore(&deployers, promise, change, request)) {
        return Level::Audit;
    }
    if is_old { rule.info.level.min(Level::Warn) } else { rule.info.level }
}

/// Reports whether a status write is a restore from a backup: a configured restorer writes the status while no job is
/// open. Returns `false` for the requirement that rule DP001 checks, because a finished job without a final phase is
/// never a valid backup.
fn is_restore(deployers: &Deployers, promise: &Promise, change: &Change<'_>, request: &Request<'_>) -> bool {
    deployers.restorers.has(&request.user) && change.old.job() != Job::Open && promise.rule != "DP001"
}
