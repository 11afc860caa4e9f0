//! KZ003: reports entries of `components` in a kustomization file that refer to a file. kustomize rejects such entries,
//! because a component must be a folder with its own kustomization file. Also reports if the path to build is a file
//! and not a folder.

use crate::admission::Level;
use crate::kustomize::file::NAMES;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::tree::TreePath;
use crate::rule::RuleInfo;

/// The rule definition of KZ003.
pub(super) static RULE: RuleInfo = RuleInfo {
    id: "KZ003",
    name: "file-as-component",
    level: Level::Deny,
    summary: "a file where only a folder is allowed",
    page: include_str!("../../../docs/rules/KZ003.md"),
};

/// Returns a finding about `entry`, which refers to the file `path`, although it must refer to a folder. `entry` is an
/// entry of `components`, or the path of the folder to build.
pub(in crate::kustomize) fn found(site: Site, entry: &str, path: &TreePath) -> TreeFinding {
    let folder = entry.rsplit_once('/').map_or(".", |(folder, _)| folder);
    let is_kustomization = NAMES.contains(&path.name());
    let help = if is_kustomization {
        format!("use its folder: {folder}")
    } else {
        "list files of objects under \"resources:\"".to_owned()
    };
    let what = if is_kustomization { "a kustomization file, not its folder" } else { "a file" };
    RULE.at(site, format!("\"{entry}\" is {what}; components are folders"))
        .found("a file")
        .allowed("folders with a Component")
        .help(help)
}
