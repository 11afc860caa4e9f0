//! DP008: reports a DeployItem whose annotations and spec route it to different deployers.

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Metadata, Request};
use crate::catalog::View;
use crate::landscaper::annotations::{ROUTE, TARGET_ANNOTATION, TYPE_ANNOTATION};
use crate::landscaper::deployer::NO_TARGET;
use crate::landscaper::deployer::responsibility::{self, Route};
use crate::landscaper::dry_run_annotations::DryRunAnnotations;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] =
    [kinds::matches(&DEPLOY_ITEMS, WRITES, FailurePolicy::Ignore).reading(responsibility::READ)];

/// The rule definition of DP008.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DP008",
        name: "routing-contradicts-spec",
        level: Level::Deny,
        summary: "annotations deployer-type or deployer-target-name that contradict the spec",
        page: include_str!("../../../docs/rules/DP008.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let specified = Route::specified(request.object());
    let expected = [
        (TYPE_ANNOTATION, specified.type_name, "spec.type"),
        (TARGET_ANNOTATION, specified.target.unwrap_or(NO_TARGET), "spec.target.name"),
    ];
    let metadata = Metadata::of(request.object());
    // The mutator `dry-run` routes items in dry run to the dry-run deployer.
    let is_dry_run = DryRunAnnotations::of(request.object()).is_dry_run();
    let judge = |(key, wanted, spec): (&str, &str, &str)| {
        let written = metadata.annotation(key).filter(|written| !written.is_empty() && *written != wanted)?;
        if is_dry_run && (key, written) == (TYPE_ANNOTATION, ROUTE) {
            return None;
        }
        let message = format!("deployers use {written:?} instead of {spec}, which is {wanted:?}");
        let finding = RULE.finding(FieldPath::of(["metadata", "annotations", key]), message).found(written);
        Some(finding.allowed(wanted).help(format!("write {wanted:?}, or remove the annotation")))
    };
    expected.into_iter().filter_map(judge).collect()
}
