//! KZ025: a patch whose target selects no object.

use crate::admission::Level;
use crate::kustomize::file::Selector;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::rule::RuleInfo;

/// The rule definition of KZ025.
pub(super) static RULE: RuleInfo = RuleInfo {
    id: "KZ025",
    name: "target-selects-nothing",
    level: Level::Warn,
    summary: "a patch whose target selects nothing",
    page: include_str!("../../../docs/rules/KZ025.md"),
};

/// Returns a finding about a patch whose target selects no object.
pub(in crate::kustomize) fn found(site: Site, target: &Selector) -> TreeFinding {
    let parts = [&target.kind, &target.name, &target.namespace];
    let said: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).map(String::as_str).collect();
    RULE.at(site, format!("the target selects nothing: there is no {}", said.join(" ")))
        .harmless()
        .help("correct the target, or remove the patch")
}

/// Lowers a finding about the target of a patch to level `audit`. Callers use this function if it may be intended that
/// the target selects no object. There are two such cases:
///
/// - The target is in a Component and has no name. It may select objects in other builds that use the Component.
/// - The kustomization lists a file without objects. A tool may add objects to this file later.
pub(in crate::kustomize) fn unimportant(finding: TreeFinding) -> TreeFinding {
    TreeFinding { level: Level::Audit, ..finding }
}
