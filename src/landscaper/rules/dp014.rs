//! DP014: reports a DeployItem whose job is replaced before it has finished.

use crate::admission::{Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::deployer::finding::{Violation, field, unless_met};
use crate::landscaper::deployer::requirements::JOBS_COME_ONE_BY_ONE;
use crate::landscaper::deployer::status;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::status(&DEPLOY_ITEMS, FailurePolicy::Ignore).reading(status::READ)];

/// The rule definition of DP014.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DP014",
        name: "job-replaced",
        level: Level::Warn,
        summary: "a jobID that changes before the job has finished",
        page: include_str!("../../../docs/rules/DP014.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    unless_met(&RULE, &JOBS_COME_ONE_BY_ONE, (request, view), |change| Violation {
        field: field("jobID"),
        what: format!("job {:?} is replaced by {:?} before it has finished", change.old.job, change.new.job),
        correct: format!("keep the jobID {:?} until jobIDFinished is {0:?} too", change.old.job),
    })
}
