//! DP013: reports values of the annotation `delete-without-uninstall` other than `"true"`.

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::annotations::{DELETE_WITHOUT_UNINSTALL, text};
use crate::landscaper::kinds::{self, DEPLOY_ITEMS, EXECUTIONS, INSTALLATIONS};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 3] = [
    kinds::matches(&DEPLOY_ITEMS, WRITES, FailurePolicy::Ignore).reading(&[]),
    kinds::matches(&EXECUTIONS, WRITES, FailurePolicy::Ignore).reading(&[]),
    kinds::matches(&INSTALLATIONS, WRITES, FailurePolicy::Ignore).reading(&[]),
];

/// The rule definition of DP013.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DP013",
        name: "delete-without-uninstall-value",
        level: Level::Deny,
        summary: "a delete-without-uninstall annotation that is not \"true\"",
        page: include_str!("../../../docs/rules/DP013.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let Some(value) = text(request.object(), DELETE_WITHOUT_UNINSTALL).filter(|value| *value != "true") else {
        return Vec::new();
    };
    let field = FieldPath::of(["metadata", "annotations", DELETE_WITHOUT_UNINSTALL]);
    let message = format!("with {value:?}, a deletion uninstalls everything: only \"true\" keeps the deployed objects");
    let mut finding = RULE.finding(field, message).found(value).allowed("\"true\"");
    let is_old =
        request.operation == Operation::Update && text(request.old_object(), DELETE_WITHOUT_UNINSTALL) == Some(value);
    if is_old || value == "false" {
        finding.level = Level::Warn;
    }
    vec![finding.help("write \"true\" to keep the deployed objects, or remove the annotation")]
}
