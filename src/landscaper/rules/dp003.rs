//! DP003: reports a change of a DeployItem's phase after its job has finished.

use crate::admission::{Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::deployer::finding::{Violation, phase_field, unless_met};
use crate::landscaper::deployer::requirements::RESULT_IS_FINAL;
use crate::landscaper::deployer::status::{self, Change};
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::status(&DEPLOY_ITEMS, FailurePolicy::Ignore).reading(status::READ)];

/// The rule definition of DP003.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DP003",
        name: "result-changed",
        level: Level::Deny,
        summary: "a phase that changes after the job has finished",
        page: include_str!("../../../docs/rules/DP003.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    unless_met(&RULE, &RESULT_IS_FINAL, (request, view), |change| {
        let Change { old, new } = change;
        Violation {
            field: phase_field(request),
            what: format!(
                "job {:?} has finished as {:?}, and its phase cannot become {:?}",
                new.job, old.phase_text, new.phase_text
            ),
            correct: format!("leave the phase {:?} until Landscaper writes another jobID", old.phase_text),
        }
    })
}
