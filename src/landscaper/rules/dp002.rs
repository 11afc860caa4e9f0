//! DP002: reports a DeployItem whose `jobIDFinished` changes to a value other than its `jobID`.

use crate::admission::{Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::deployer::finding::{Violation, field, unless_met};
use crate::landscaper::deployer::requirements::FINISHED_IS_THE_JOB;
use crate::landscaper::deployer::status;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::status(&DEPLOY_ITEMS, FailurePolicy::Ignore).reading(status::READ)];

/// The rule definition of DP002.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DP002",
        name: "finished-another-job",
        level: Level::Deny,
        summary: "a jobIDFinished that changes to a value other than jobID",
        page: include_str!("../../../docs/rules/DP002.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    unless_met(&RULE, &FINISHED_IS_THE_JOB, (request, view), |change| Violation {
        field: field("jobIDFinished"),
        what: format!("jobIDFinished is {:?}, but the current job is {:?}", change.new.finished, change.new.job),
        correct: format!("write {{jobIDFinished: {:?}}}, which is the jobID, or leave it unchanged", change.new.job),
    })
}
