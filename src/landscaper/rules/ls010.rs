//! LS010: reports a Target with both `config` and `secretRef`.

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, TARGETS};
use crate::landscaper::validation::{Findings, member};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::matches(&TARGETS, WRITES, FailurePolicy::Ignore)];

/// The definition of rule LS010.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "LS010",
        name: "landscaper-target",
        level: Level::Off,
        summary: "a Target with both config and secretRef",
        page: include_str!("../../../docs/rules/LS010.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mut findings = Findings::new(&RULE, request);
    let has = |key: &str| !member(findings.spec(), key).is_null();
    if has("config") && has("secretRef") {
        findings.add(FieldPath::of(["spec"]), "config and secretRef are mutually exclusive", "remove one of them");
    }
    findings.into_found()
}
