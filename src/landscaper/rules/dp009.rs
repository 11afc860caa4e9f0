//! DP009: reports the removal of Landscaper's finalizer from a DeployItem that is not being deleted.

use serde_json::Value;

use super::UPDATE;
use crate::admission::{FieldPath, Finding, Level, Metadata, Request};
use crate::catalog::View;
use crate::landscaper::deployer::FINALIZER;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::matches(&DEPLOY_ITEMS, UPDATE, FailurePolicy::Ignore).reading(&[])];

/// The rule definition of DP009.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DP009",
        name: "finalizer-taken-off",
        level: Level::Deny,
        summary: "removing Landscaper's finalizer from a DeployItem that is not being deleted",
        page: include_str!("../../../docs/rules/DP009.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let was_removed = has_finalizer(request.old_object()) && !has_finalizer(request.object());
    if !was_removed || request.is_deleting() {
        return Vec::new();
    }
    let message =
        format!("{FINALIZER} is removed, but the DeployItem is not being deleted: no deployer would uninstall it");
    let finding = RULE.finding(FieldPath::of(["metadata", "finalizers"]), message).allowed(FINALIZER);
    vec![finding.help("delete the DeployItem first; remove the finalizer when everything is uninstalled")]
}

fn has_finalizer(object: &Value) -> bool {
    Metadata::of(object).finalizers().any(|finalizer| finalizer == FINALIZER)
}
