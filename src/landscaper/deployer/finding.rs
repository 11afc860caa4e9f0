//! Creates findings about status writes that violate a requirement of Landscaper's deployer contract.

use super::configuration::Deployers;
use super::requirements::Requirement;
use super::status::{Change, Job};
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::rule::Rule;

/// Checks a write of a DeployItem's status against a requirement of Landscaper's deployer contract. Returns a finding
/// of the rule `rule` if the write violates the requirement. `describe` describes the violation for the finding.
pub(in crate::landscaper) fn unless_met(
    rule: &'static Rule,
    requirement: &Requirement,
    (request, view): (&Request<'_>, &View<'_>),
    describe: impl Fn(&Change<'_>) -> Violation,
) -> Vec<Finding> {
    let change = Change::of(request.old_object(), request.object());
    if (requirement.is_met)(&change) {
        return Vec::new();
    }
    let Violation { field, what, correct } = describe(&change);
    let (before, after) = (change.old.summary(), change.new.summary());
    let message = format!("{what}; before: {before}; now: {after}");
    let mut finding = rule.finding(field, message).found(after).allowed(requirement.sentence).help(correct);
    finding.level = level(rule, requirement, &change, request, view);
    vec![finding]
}

/// A description of how a status write violates Landscaper's deployer contract. A finding is created from it.
pub(in crate::landscaper) struct Violation {
    /// The field path of the value that violates a requirement of the deployer contract.
    pub(in crate::landscaper) field: FieldPath,
    /// A few words that say how the status write violates a requirement of Landscaper's deployer contract. They become
    /// the start of the message of the finding.
    pub(in crate::landscaper) what: String,
    /// The help text of the finding. It says what a correct status write looks like.
    pub(in crate::landscaper) correct: String,
}

/// Returns the field path of the field `name` of `status`.
pub(in crate::landscaper) fn field(name: &str) -> FieldPath {
    FieldPath::of(["status", name])
}

/// Returns the field path of the effective phase of the DeployItem in a request: `status.deployItemPhase` if it is set,
/// otherwise `status.phase`.
pub(in crate::landscaper) fn phase_field(request: &Request<'_>) -> FieldPath {
    let older = request.object().pointer("/status/deployItemPhase").and_then(|phase| phase.as_str());
    field(if older.is_some_and(|phase| !phase.is_empty()) { "deployItemPhase" } else { "phase" })
}

/// Returns the level (`deny`, `warn` or `audit`) of a finding about a status write that violates the requirement
/// `requirement` of Landscaper's deployer contract.
///
/// The level is `audit` if a user listed in `deployers.restorers` of the configuration restores the status from a
/// backup. The level is at most `warn` if the old status already violates the requirement in the same way, so that
/// other fields can still be written.
fn level(rule: &Rule, requirement: &Requirement, change: &Change<'_>, request: &Request<'_>, view: &View<'_>) -> Level {
    let before = Change { old: change.old, new: change.old };
    let parts = |status: &super::status::Status<'_>| format!("{}{:?}", status.summary(), status.reconciled);
    let is_old = !(requirement.is_met)(&before) && parts(&change.old) == parts(&change.new);
    if Deployers::of(view).is_some_and(|deployers| is_restore(&deployers, requirement, change, request)) {
        return Level::Audit;
    }
    if is_old { rule.info.level.min(Level::Warn) } else { rule.info.level }
}

/// Reports whether a status write restores a DeployItem from a backup. This is assumed if `deployers.restorers` of the
/// configuration lists the user, and no Landscaper job for the DeployItem was requested or in progress before the
/// write.
///
/// Always returns `false` for the requirement of rule DP001, that a finished job has a final phase. A valid backup
/// never violates this requirement.
fn is_restore(deployers: &Deployers, requirement: &Requirement, change: &Change<'_>, request: &Request<'_>) -> bool {
    deployers.restorers.has(&request.user) && change.old.job() != Job::Open && requirement.rule != "DP001"
}
