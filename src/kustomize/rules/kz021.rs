//! KZ021: a component that is applied twice to the same objects.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::rule::RuleInfo;

/// The rule definition of KZ021.
pub(super) static RULE: RuleInfo = RuleInfo {
    id: "KZ021",
    name: "component-twice",
    level: Level::Warn,
    summary: "a component that is applied twice to the same objects",
    page: include_str!("../../../docs/rules/KZ021.md"),
};

/// Returns a finding about an entry of `components` that is applied a second time to the same objects. An earlier entry
/// names the same component. `before` says in which file and line this earlier entry is.
pub(in crate::kustomize) fn found(site: Site, entry: &str, before: &Site) -> TreeFinding {
    RULE.at(site, format!("\"{entry}\" is applied a second time (first {before}, {})", before.field))
        .harmless()
        .help("list it once")
}
