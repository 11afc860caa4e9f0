//! DP001: reports a DeployItem whose job is finished, but whose phase is not final.

use crate::admission::{Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::deployer::finding::{Violation, phase_field, unless_met};
use crate::landscaper::deployer::requirements::FINISHED_IS_FINAL;
use crate::landscaper::deployer::status;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::status(&DEPLOY_ITEMS, FailurePolicy::Ignore).reading(status::READ)];

/// The rule definition of DP001.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DP001",
        name: "finished-but-not-final",
        level: Level::Deny,
        summary: "a status with a finished job but a phase that is not final",
        page: include_str!("../../../docs/rules/DP001.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    unless_met(&RULE, &FINISHED_IS_FINAL, (request, view), |change| {
        let job = change.new.job;
        Violation {
            field: phase_field(request),
            what: format!("job {job:?} is finished, but its phase is {:?}", change.new.phase_text),
            correct: format!(
                "write both at once: {{phase: Succeeded, jobIDFinished: {job:?}}}, or Failed with lastError"
            ),
        }
    })
}
