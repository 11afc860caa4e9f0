//! KZ026: reports a manifest that no kustomization file lists, although there is a kustomization file in the same
//! folder.

use crate::admission::Level;
use crate::kustomize::finding::{Fix, Site, TreeFinding};
use crate::rule::RuleInfo;

/// The rule definition of KZ026.
pub(super) static RULE: RuleInfo = RuleInfo {
    id: "KZ026",
    name: "forgotten-manifest",
    level: Level::Warn,
    summary: "a file with objects beside a kustomization file, but not listed by any kustomization",
    page: include_str!("../../../docs/rules/KZ026.md"),
};

/// Returns a finding about the unlisted file `name` in the folder of a kustomization file. `site` is a position in the
/// kustomization file. `fix` adds the file to `resources`.
pub(in crate::kustomize) fn found(site: Site, name: &str, fix: Fix) -> TreeFinding {
    RULE.at(site, format!("\"{name}\" holds Kubernetes objects, and no kustomization lists it"))
        .harmless()
        .help("list it under \"resources:\", or delete it; if it is applied in another way, mention it in a comment")
        .fix(fix)
}
