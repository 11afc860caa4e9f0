//! KZ006: several kustomization files in one folder.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::tree::TreePath;
use crate::rule::RuleInfo;

/// The rule definition of KZ006.
pub(in crate::kustomize) static RULE: RuleInfo = RuleInfo {
    id: "KZ006",
    name: "several-kustomization-files",
    level: Level::Deny,
    summary: "a folder with more than one kustomization file",
    page: include_str!("../../../docs/rules/KZ006.md"),
};

/// Returns the finding that `folder` contains several kustomization files, although only one is allowed. `names`
/// contains their file names, such as `kustomization.yaml` and `Kustomization`.
pub(in crate::kustomize) fn found(site: Site, folder: &TreePath, names: &[&str]) -> TreeFinding {
    RULE.at(site, format!("{folder} has several kustomization files: {}", names.join(", ")))
        .found(names.join(", "))
        .allowed("one of them")
        .help("keep one of them")
}
