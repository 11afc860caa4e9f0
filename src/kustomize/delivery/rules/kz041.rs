//! KZ041: a folder with kustomization files that could not be checked, for example because its Flux source does not
//! exist.

use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::kustomize::delivery::kustomization::{MATCHERS, SourceRef, live_reads};
use crate::kustomize::delivery::source;
use crate::rule::{Rule, RuleInfo};

/// The rule definition of KZ041.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "KZ041",
        name: "tree-not-checked",
        level: Level::Warn,
        summary: "a tree that was not checked when the object was admitted",
        page: include_str!("../../../../docs/rules/KZ041.md"),
    },
    matchers: &MATCHERS,
    looks_up: &source::SOURCES,
    live_reads: Some(live_reads),
    check,
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let Some([kind, namespace, name]) = SourceRef::parts(request.object(), &request.namespace) else {
        return Vec::new();
    };
    let Some(known) = source::kind(kind) else { return Vec::new() };
    let why = match view.find(known, namespace, name) {
        Some(stored) if source::is_empty(stored.value()) => "has no artifact yet",
        None if view.is_missing(known, namespace, name) => "does not exist",
        _ => return Vec::new(),
    };
    let message = format!("the tree is not checked: {kind} {namespace}/{name} {why}");
    vec![found(FieldPath::of(["spec", "sourceRef"]), &message)]
}

/// Returns a finding about a tree that is not checked; `message` contains the reason.
pub(in crate::kustomize::delivery) fn found(field: FieldPath, message: &str) -> Finding {
    RULE.finding(field, message).help("to check the tree from files, run `portcullis check`")
}

/// Returns a finding for the audit log. It says that findings in a tree do not deny the request; `why` is the reason.
pub(in crate::kustomize::delivery) fn capped(field: FieldPath, why: &str) -> Finding {
    let message = format!("findings in the tree are only warnings, regardless of the configuration: {why}");
    Finding::new(RULE.info.id, Level::Audit, field, message)
}
