//! DR007: reports objects that name a DryRunConfiguration in an annotation, but have no dry-run annotation.

use super::WRITES;
use crate::admission::{Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::annotations::{CONFIGURATION_ANNOTATION, DRY_RUN_ANNOTATION};
use crate::landscaper::dry_run::{dry_run_annotations, unless_unchanged};
use crate::landscaper::dry_run_annotations::{DryRunAnnotations, annotation};
use crate::landscaper::kinds::{self, DEPLOY_ITEMS, EXECUTIONS, INSTALLATIONS};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 3] = [
    kinds::matches(&INSTALLATIONS, WRITES, FailurePolicy::Ignore).reading(&[]),
    kinds::matches(&DEPLOY_ITEMS, WRITES, FailurePolicy::Ignore),
    kinds::matches(&EXECUTIONS, WRITES, FailurePolicy::Ignore),
];

/// The rule definition of DR007.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DR007",
        name: "configuration-without-dry-run",
        level: Level::Deny,
        summary: "an object that names a DryRunConfiguration but has no dry-run annotation",
        page: include_str!("../../../docs/rules/DR007.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let annotations = DryRunAnnotations::of(request.object());
    let (None, Some(name)) = (annotations.dry_run, annotations.configuration) else { return Vec::new() };
    let message =
        format!("names DryRunConfiguration {name:?}, but without {DRY_RUN_ANNOTATION} everything is deployed");
    let mut finding = RULE.finding(annotation(CONFIGURATION_ANNOTATION), message).found(name);
    finding.level = unless_unchanged(request, finding.level, dry_run_annotations);
    vec![finding.help(format!("add {DRY_RUN_ANNOTATION}: \"true\", or remove this annotation"))]
}
