//! DR001: reports values of the dry-run annotation other than `"true"` and `"false"`.

use super::WRITES;
use crate::admission::{Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::annotations::DRY_RUN_ANNOTATION;
use crate::landscaper::dry_run::{dry_run_annotations, unless_unchanged};
use crate::landscaper::dry_run_annotations::{DryRunAnnotations, annotation};
use crate::landscaper::kinds::{self, DEPLOY_ITEMS, EXECUTIONS, INSTALLATIONS};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 3] = [
    kinds::matches(&INSTALLATIONS, WRITES, FailurePolicy::Ignore).reading(&[]),
    kinds::matches(&EXECUTIONS, WRITES, FailurePolicy::Ignore),
    kinds::matches(&DEPLOY_ITEMS, WRITES, FailurePolicy::Ignore),
];

/// The rule definition of DR001.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DR001",
        name: "dry-run-value",
        level: Level::Deny,
        summary: "a dry-run annotation that is neither \"true\" nor \"false\"",
        page: include_str!("../../../docs/rules/DR001.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let value = DryRunAnnotations::of(request.object()).dry_run;
    let Some(value) = value.filter(|value| !["true", "false"].contains(value)) else { return Vec::new() };
    let field = annotation(DRY_RUN_ANNOTATION);
    let message = format!("{value:?} is not a dry run: with this value, everything is deployed");
    let mut finding = RULE.finding(field, message).found(value).allowed("\"true\" or \"false\"");
    finding.level = unless_unchanged(request, finding.level, dry_run_annotations);
    vec![finding.help("write \"true\" for a dry run")]
}
