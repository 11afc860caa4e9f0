//! DP004: reports a write that changes the phase of a DeployItem to a working phase, such as `Init`, although
//! Landscaper has not requested this work. Landscaper requests work by setting a new `jobID`, which then differs from
//! `jobIDFinished`. The rule also reports the write if the new `lastReconcileTime` is missing, or is earlier than the
//! old one. It also reports a write that clears both job ids while a deployer works.

use crate::admission::{Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::deployer::finding::{Violation, field, phase_field, unless_met};
use crate::landscaper::deployer::requirements::PICKED_UP;
use crate::landscaper::deployer::status::{self, Change, Job, Status};
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::status(&DEPLOY_ITEMS, FailurePolicy::Ignore).reading(status::READ)];

/// The rule definition of DP004.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DP004",
        name: "work-without-pickup",
        level: Level::Deny,
        summary: "a phase that starts work without an open job, or without lastReconcileTime",
        page: include_str!("../../../docs/rules/DP004.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let mut findings = unless_met(&RULE, &PICKED_UP, (request, view), |change| violation(change, request));
    let change = Change::of(request.old_object(), request.object());
    for finding in &mut findings {
        // The clocks of two machines may differ.
        if change.new.job() == Job::Open && change.new.reconciled.is_some() && is_by_another(&change) {
            finding.level = finding.level.min(Level::Warn);
        }
    }
    findings
}

fn is_by_another(Change { old, new }: &Change<'_>) -> bool {
    old.deployer != new.deployer
}

fn violation(change: &Change<'_>, request: &Request<'_>) -> Violation {
    let Change { old, new } = change;
    let correct = format!(
        "write {{phase: {}, lastReconcileTime: now}} when jobID differs from jobIDFinished",
        first_phase(change)
    );
    if new.job() != Job::Open {
        let what = format!("the phase {:?} means that a deployer works, but there is no open job", new.phase_text);
        return Violation { field: phase_field(request), what, correct };
    }
    let time = |status: &Status<'_>| status.reconciled.map(|time| time.to_string()).unwrap_or_default();
    let what = match new.reconciled {
        None => format!("the phase {:?} starts work, but lastReconcileTime is not set", new.phase_text),
        Some(_) => {
            format!(
                "the phase {:?} starts work with lastReconcileTime {}, which is before the old one, {}",
                new.phase_text,
                time(new),
                time(old)
            )
        }
    };
    Violation { field: field("lastReconcileTime"), what, correct }
}

fn first_phase(change: &Change<'_>) -> &'static str {
    if change.new.being_deleted { "InitDelete" } else { "Init" }
}
