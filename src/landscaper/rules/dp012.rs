//! DP012: reports a DeployItem with a `spec.config` that the manifest or the helm deployer rejects.

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::deployer::provider::{self, Fault};
use crate::landscaper::deployer::responsibility::Route;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::matches(&DEPLOY_ITEMS, WRITES, FailurePolicy::Ignore).reading(&[&["spec"]])];

/// The rule definition of DP012.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DP012",
        name: "configuration-that-its-deployer-rejects",
        level: Level::Deny,
        summary: "a manifest or helm DeployItem whose spec.config its deployer would reject",
        page: include_str!("../../../docs/rules/DP012.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let config = |object: &serde_json::Value| object.pointer("/spec/config").cloned();
    let is_old = request.operation == Operation::Update && config(request.old_object()) == config(request.object());
    let faults = provider::faults(Route::specified(request.object()).type_name, config(request.object()).as_ref());
    let finding = |Fault { level, field, problem, help }| {
        let mut finding = RULE.finding(FieldPath::of(["spec", "config"]).join(&field), problem).help(help);
        finding.level = if is_old { Level::Warn } else { level };
        finding
    };
    faults.into_iter().map(finding).collect()
}
