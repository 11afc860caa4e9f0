//! DR011: reports exports that read objects from different target clusters, but would read the same object in a dry
//! run. In a dry run, exports read objects from a DryRunConfiguration, which does not say to which target cluster an
//! object belongs. So objects with the same apiVersion, kind, namespace and name cannot be distinguished.

use std::collections::BTreeMap;

use serde_json::Value;

use super::WRITES;
use crate::admission::{Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::dry_run::fragment::Identity;
use crate::landscaper::dry_run::item::items;
use crate::landscaper::dry_run::reading;
use crate::landscaper::dry_run_annotations::DryRunAnnotations;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS, EXECUTIONS};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 2] = [
    kinds::matches(&DEPLOY_ITEMS, WRITES, FailurePolicy::Ignore),
    kinds::matches(&EXECUTIONS, WRITES, FailurePolicy::Ignore),
];

/// The rule definition of DR011.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DR011",
        name: "object-of-several-targets",
        level: Level::Warn,
        summary: "exports of a dry run that read objects of the same name from several targets",
        page: include_str!("../../../docs/rules/DR011.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[&DEPLOY_ITEMS],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let annotations = DryRunAnnotations::of(request.object());
    if !annotations.is_dry_run() {
        return Vec::new();
    }
    let mut targets: BTreeMap<Identity, String> = BTreeMap::new();
    if let Some(name) = annotations.configuration.filter(|_| reads(request.object())) {
        for other in reading::users(&request.namespace, name, view) {
            if other.name() != request.display_name() {
                collect_targets(other.value(), &mut targets);
            }
        }
    }
    compare(request.object(), &mut targets)
}

fn reads(object: &Value) -> bool {
    items(object).is_ok_and(|items| items.iter().any(|item| !item.exports.is_empty()))
}

fn collect_targets(object: &Value, targets: &mut BTreeMap<Identity, String>) {
    for item in items(object).unwrap_or_default() {
        for export in &item.exports {
            if let Some(identity) = &export.from_resource {
                let target = export.target_name.clone().unwrap_or_else(|| item.target.clone());
                targets.entry(identity.clone()).or_insert(target);
            }
        }
    }
}

fn compare(object: &Value, targets: &mut BTreeMap<Identity, String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for item in items(object).unwrap_or_default() {
        for export in &item.exports {
            let Some(identity) = &export.from_resource else { continue };
            let target = export.target_name.as_ref().unwrap_or(&item.target);
            let other = targets.entry(identity.clone()).or_insert_with(|| target.clone());
            if other != target {
                let field = export.field.key("targetName");
                let text = format!(
                    "{identity} is read from two targets, {target:?} and {other:?}: both read the same fragment"
                );
                findings.push(RULE.finding(item.field(&field), item.message(&field, &text)));
            }
        }
    }
    findings
}
