//! LS006: reports an invalid cron schedule in an Installation.

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::cron;
use crate::landscaper::kinds::{self, INSTALLATIONS};
use crate::landscaper::validation::{Findings, member, text};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::matches(&INSTALLATIONS, WRITES, FailurePolicy::Ignore)];

/// The definition of rule LS006.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "LS006",
        name: "landscaper-schedule",
        level: Level::Off,
        summary: "a cronSpec of an Installation that is not a valid schedule",
        page: include_str!("../../../docs/rules/LS006.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mut findings = Findings::new(&RULE, request);
    let automatic = member(findings.spec(), "automaticReconcile");
    for when in ["succeededReconcile", "failedReconcile"] {
        let schedule = text(member(automatic, when), "cronSpec");
        let problem = if schedule.is_empty() { None } else { cron::problem(schedule) };
        if let Some(problem) = problem {
            let field = FieldPath::of(["spec", "automaticReconcile", when, "cronSpec"]);
            let help = "write five fields, such as \"0 6 * * 1-5\", or @daily, or @every 1h";
            findings.add(field, format!("{schedule:?} is not a schedule: {problem}"), help);
        }
    }
    findings.into_found()
}
