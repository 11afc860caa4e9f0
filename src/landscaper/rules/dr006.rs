//! DR006: reports a DeployItem or Execution in dry run that has exports, but names no existing DryRunConfiguration.
//! Also warns if an Installation in dry run names a DryRunConfiguration that does not exist.

use super::WRITES;
use crate::admission::{Finding, Level, Request};
use crate::catalog::{Reference, View};
use crate::landscaper::annotations::CONFIGURATION_ANNOTATION;
use crate::landscaper::dry_run::reading::{self, Configuration, Reading};
use crate::landscaper::dry_run_annotations::{DryRunAnnotations, annotation};
use crate::landscaper::kinds::{self, DEPLOY_ITEMS, DRY_RUN_CONFIGURATIONS, EXECUTIONS, INSTALLATIONS};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 3] = [
    kinds::matches(&DEPLOY_ITEMS, WRITES, FailurePolicy::Ignore),
    kinds::matches(&EXECUTIONS, WRITES, FailurePolicy::Ignore),
    kinds::matches(&INSTALLATIONS, WRITES, FailurePolicy::Ignore).reading(&[]),
];

/// The rule definition of DR006.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DR006",
        name: "no-configuration",
        level: Level::Deny,
        summary: "a dry run with exports that names no DryRunConfiguration, or one that does not exist",
        page: include_str!("../../../docs/rules/DR006.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[&DRY_RUN_CONFIGURATIONS],
    live_reads: Some(live_reads),
    check,
};

fn live_reads(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    if !kinds::is(&INSTALLATIONS, request) {
        return reading::live_reads(request, view);
    }
    let name = named(request);
    name.and_then(|name| view.unless_found(&DRY_RUN_CONFIGURATIONS, &request.namespace, name)).into_iter().collect()
}

/// Returns the name of the DryRunConfiguration that an Installation in dry run names. `None` if the Installation is not
/// in dry run or names no DryRunConfiguration.
fn named<'r>(request: &'r Request<'_>) -> Option<&'r str> {
    let annotations = DryRunAnnotations::of(request.object());
    annotations.configuration.filter(|name| annotations.is_dry_run() && !name.is_empty())
}

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    if kinds::is(&INSTALLATIONS, request) {
        let missing = named(request).filter(|name| view.is_missing(&DRY_RUN_CONFIGURATIONS, &request.namespace, name));
        return missing.map(|name| finding(&does_not_exist(request, name), Level::Warn)).into_iter().collect();
    }
    let reading = Reading::of(request.object(), &request.namespace, view);
    let message = match &reading.configuration {
        Configuration::NotNamed => {
            "is missing: this object exports values, which a dry run reads from a DryRunConfiguration".to_owned()
        }
        Configuration::Missing(name) => does_not_exist(request, name),
        _ => return Vec::new(),
    };
    vec![finding(&message, reading::level(request, view, RULE.info.level))]
}

fn does_not_exist(request: &Request<'_>, name: &str) -> String {
    format!("DryRunConfiguration {name:?} does not exist in namespace {}", request.namespace)
}

fn finding(message: &str, level: Level) -> Finding {
    let mut finding = RULE.finding(annotation(CONFIGURATION_ANNOTATION), message);
    finding.level = level;
    finding.help("create it, and name it in this annotation of the root Installation")
}
