//! DR003: reports an entry of `spec.exports` in a DryRunConfiguration that describes the same object as an earlier
//! entry.

use std::collections::HashMap;

use super::WRITES;
use crate::admission::{Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::dry_run::fragment::fragments;
use crate::landscaper::kinds::{self, DRY_RUN_CONFIGURATIONS};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::matches(&DRY_RUN_CONFIGURATIONS, WRITES, FailurePolicy::Fail)];

/// The rule definition of DR003.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DR003",
        name: "two-fragments-for-one-object",
        level: Level::Deny,
        summary: "two fragments for the same object",
        page: include_str!("../../../docs/rules/DR003.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mut first = HashMap::new();
    let mut findings = Vec::new();
    for fragment in fragments(request.object()) {
        let identity = fragment.identity();
        if identity.name.is_empty() {
            continue;
        }
        if let Some(earlier) = first.get(&identity) {
            let message = format!("is ignored: spec.exports[{earlier}] is already a fragment for {identity}");
            findings.push(RULE.finding(fragment.field(), message).help("put all fields into one fragment"));
        } else {
            first.insert(identity, fragment.index);
        }
    }
    findings
}
