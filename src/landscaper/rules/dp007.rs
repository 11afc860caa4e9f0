//! DP007: reports a change of the type of a DeployItem.

use super::UPDATE;
use crate::admission::{FieldPath, Finding, Level, Request, json as wire};
use crate::catalog::View;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::landscaper::validation;
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] =
    [kinds::matches(&DEPLOY_ITEMS, UPDATE, FailurePolicy::Ignore).reading(&[&["spec", "type"]])];

/// The rule definition of DP007.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DP007",
        name: "type-changed",
        level: Level::Deny,
        summary: "a DeployItem whose spec.type changes",
        page: include_str!("../../../docs/rules/DP007.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let type_of = |object: &serde_json::Value| object.pointer("/spec/type").cloned().unwrap_or_default();
    let (old, new) = (type_of(request.old_object()), type_of(request.object()));
    if old == new {
        return Vec::new();
    }
    let message = format!("the type was {} and cannot become {}", wire::brief(&old), wire::brief(&new));
    let finding =
        RULE.finding(FieldPath::of(["spec", "type"]), message).found(wire::brief(&new)).allowed(wire::brief(&old));
    let mut finding = finding.help("leave the type unchanged; for another deployer, create another DeployItem");
    if validation::is_bypassed(request) {
        finding.level = Level::Audit;
    }
    vec![finding]
}
