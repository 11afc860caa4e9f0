//! DP005: reports a deletion phase, such as `Deleting`, on a DeployItem that is not being deleted.

use crate::admission::{Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::deployer::finding::{Violation, phase_field, unless_met};
use crate::landscaper::deployer::requirements::UNINSTALLS_WHAT_IS_DELETED;
use crate::landscaper::deployer::status;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::status(&DEPLOY_ITEMS, FailurePolicy::Ignore).reading(status::READ)];

/// The rule definition of DP005.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DP005",
        name: "uninstalls-what-is-not-deleted",
        level: Level::Deny,
        summary: "InitDelete, Deleting or DeleteFailed on a DeployItem that is not being deleted",
        page: include_str!("../../../docs/rules/DP005.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    unless_met(&RULE, &UNINSTALLS_WHAT_IS_DELETED, (request, view), |change| {
        let phase = change.new.phase_text;
        Violation {
            field: phase_field(request),
            what: format!("the phase is {phase:?}, but the DeployItem has no deletion timestamp"),
            correct: "write Init, Progressing, Succeeded or Failed; uninstall only if the DeployItem is being deleted"
                .to_owned(),
        }
    })
}
