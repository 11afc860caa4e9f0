//! DP006: reports phases that Landscaper does not define.

use crate::admission::{Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::deployer::finding::{Violation, phase_field, unless_met};
use crate::landscaper::deployer::phase::PHASES;
use crate::landscaper::deployer::requirements::PHASE_IS_KNOWN;
use crate::landscaper::deployer::status;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};
use crate::suggestion;

static MATCHERS: [Match; 1] = [kinds::status(&DEPLOY_ITEMS, FailurePolicy::Ignore).reading(status::READ)];

/// The rule definition of DP006.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DP006",
        name: "unknown-phase",
        level: Level::Warn,
        summary: "a phase that Landscaper does not know",
        page: include_str!("../../../docs/rules/DP006.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    unless_met(&RULE, &PHASE_IS_KNOWN, (request, view), |change| {
        let phase = change.new.phase_text;
        let known = PHASES.iter().map(|(_, name, _)| *name).filter(|name| !name.is_empty());
        let near = suggestion::most_similar(phase, known).map(|name| format!("did you mean {name}?"));
        let all = "write Init, Progressing, Succeeded or Failed, or for deletions InitDelete, Deleting or DeleteFailed";
        Violation {
            field: phase_field(request),
            what: format!("{phase:?} is not a phase that Landscaper knows"),
            correct: near.unwrap_or_else(|| all.to_owned()),
        }
    })
}
