//! DR002: reports an entry of `spec.exports` in a DryRunConfiguration without apiVersion, kind or name, or without the
//! namespace of a namespaced kind.

use serde_json::Value;

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::dry_run::fragment::{Fragment, fragments};
use crate::landscaper::dry_run::scopes;
use crate::landscaper::kinds::{self, DRY_RUN_CONFIGURATIONS};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::matches(&DRY_RUN_CONFIGURATIONS, WRITES, FailurePolicy::Fail)];

/// The rule definition of DR002.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DR002",
        name: "fragment-without-identity",
        level: Level::Deny,
        summary: "a fragment without apiVersion, kind or name, or a fragment of a namespaced kind without a namespace",
        page: include_str!("../../../docs/rules/DR002.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    fragments(request.object()).flat_map(|fragment| of(&fragment)).collect()
}

fn of(fragment: &Fragment<'_>) -> Vec<Finding> {
    let (field, identity) = (fragment.field(), fragment.identity());
    if !fragment.object.is_object() {
        return vec![RULE.finding(field, "is not an object, so no export finds it")];
    }
    let metadata = field.key("metadata");
    let parts = [
        (field.key("apiVersion"), &identity.api_version),
        (field.key("kind"), &identity.kind),
        (metadata.key("name"), &identity.name),
    ];
    let mut findings: Vec<_> = parts.into_iter().filter(|(_, text)| text.is_empty()).map(missing).collect();
    let is_known_kind = !identity.api_version.is_empty() && !identity.kind.is_empty();
    if is_known_kind && identity.namespace.is_empty() {
        findings.extend(namespace(fragment, &metadata.key("namespace")));
    }
    findings
}

fn missing((field, _): (FieldPath, &String)) -> Finding {
    RULE.finding(field, "is missing: no export finds this fragment").help("copy it from fromResource of the export")
}

fn namespace(fragment: &Fragment<'_>, field: &FieldPath) -> Option<Finding> {
    let identity = fragment.identity();
    let kind = Value::from(identity.kind.clone());
    match scopes::is_namespaced(&identity) {
        Some(false) => None,
        Some(true) => {
            let message = format!("is missing: kind {kind} is namespaced, and no export finds this fragment");
            Some(RULE.finding(field.clone(), message).help("copy it from fromResource of the export"))
        }
        None => {
            let message = format!("is missing: if kind {kind} is namespaced, no export finds this fragment");
            let mut finding = RULE.finding(field.clone(), message);
            finding.level = Level::Warn;
            Some(finding)
        }
    }
}
