//! KZ020: a Component that is built on its own.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::tree::TreePath;
use crate::rule::RuleInfo;

/// The rule definition of KZ020.
pub(super) static RULE: RuleInfo = RuleInfo {
    id: "KZ020",
    name: "component-as-root",
    level: Level::Warn,
    summary: "a build root that is a Component",
    page: include_str!("../../../docs/rules/KZ020.md"),
};

/// Returns a finding about a Component that is built on its own. `root` is its folder, and `site` is the position of
/// its `kind`.
pub(in crate::kustomize) fn found(site: Site, root: &TreePath) -> TreeFinding {
    RULE.at(
        site,
        format!("{root} is a Component: built on its own, it usually renders no objects, so pruning deletes the applied ones"),
    )
    .harmless()
    .found("kind: Component")
    .help("build a Kustomization that lists it under \"components:\"")
}
