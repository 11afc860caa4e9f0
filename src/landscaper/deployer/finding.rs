//! How a broken promise is told: which, what was written before and after, and what a correct write looks like.

use super::configuration::Deployers;
use super::promises::Promise;
use super::status::{Change, Job};
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::rule::Rule;

/// The findings of the rule that watches over a promise.
pub(super) fn unless_kept(
    rule: &'static Rule,
    promise: &Promise,
    (request, view): (&Request<'_>, &View<'_>),
    tell: impl Fn(&Change<'_>) -> Told,
) -> Vec<Finding> {
    let change = Change::of(request.old_object(), request.object());
    if (promise.is_kept)(&change) {
        return Vec::new();
    }
    let Told { field, what, correct } = tell(&change);
    let (before, after) = (change.old.told(), change.new.told());
    let message = format!("{what}; before: {before}; now: {after}");
    let mut finding = rule.finding(field, message).found(after).allowed(promise.sentence).help(correct);
    finding.level = level(rule, promise, &change, request, view);
    vec![finding]
}

/// What a rule says of a broken promise.
pub(super) struct Told {
    /// The field that is wrong.
    pub(super) field: FieldPath,
    /// What is wrong with it, in a few words.
    pub(super) what: String,
    /// What a correct write looks like.
    pub(super) correct: String,
}

/// A field of the status.
pub(super) fn field(name: &str) -> FieldPath {
    FieldPath::of(["status", name])
}

/// The field that the effective phase stands in.
pub(super) fn phase_field(request: &Request<'_>) -> FieldPath {
    let older = request.object().pointer("/status/deployItemPhase").and_then(|phase| phase.as_str());
    field(if older.is_some_and(|phase| !phase.is_empty()) { "deployItemPhase" } else { "phase" })
}

/// A warning for what was broken before and is left as it was, so that the rest of a status can still be written; and a
/// record of what a declared backup restores.
fn level(rule: &Rule, promise: &Promise, change: &Change<'_>, request: &Request<'_>, view: &View<'_>) -> Level {
    let before = Change { old: change.old, new: change.old };
    let parts = |status: &super::status::Status<'_>| format!("{}{:?}", status.told(), status.reconciled);
    let is_old = !(promise.is_kept)(&before) && parts(&change.old) == parts(&change.new);
    if Deployers::of(view).is_some_and(|deployers| is_restore(&deployers, promise, change, request)) {
        return Level::Audit;
    }
    if is_old { rule.level.min(Level::Warn) } else { rule.level }
}

/// Whether a backup writes back what it read, while no job runs. That a job is finished and its phase is not is never
/// something to bring back.
fn is_restore(deployers: &Deployers, promise: &Promise, change: &Change<'_>, request: &Request<'_>) -> bool {
    deployers.restorers.has(&request.user) && change.old.job() != Job::Open && promise.rule != "DP001"
}
