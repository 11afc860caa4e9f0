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

/// Returns a finding about the target of a patch that selects no object.
pub(in crate::kustomize) fn found(site: Site, target: &Selector) -> TreeFinding {
    let parts = [&target.kind, &target.name, &target.namespace];
    let said: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).map(String::as_str).collect();
    RULE.at(site, format!("the target selects nothing: there is no {}", said.join(" ")))
        .harmless()
        .help("correct the target, or take the patch out")
}

/// Lowers the level of a finding to `audit`, because the target may select no object on purpose. An example is a target
/// without a name in a Component. Another example is a build that lists an empty file to which a tool adds objects
/// before the build.
pub(in crate::kustomize) fn unimportant(finding: TreeFinding) -> TreeFinding {
    TreeFinding { level: Level::Audit, ..finding }
}
