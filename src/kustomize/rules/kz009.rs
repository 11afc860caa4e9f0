//! KZ009: reports an entry of a kustomization file that refers to a folder that is already being built, or to a parent
//! of such a folder.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::tree::TreePath;
use crate::rule::RuleInfo;

/// The rule definition of KZ009.
pub(super) static RULE: RuleInfo = RuleInfo {
    id: "KZ009",
    name: "ancestor-reference",
    level: Level::Deny,
    summary: "an entry that refers to a folder that is being built, or to one of its parents",
    page: include_str!("../../../docs/rules/KZ009.md"),
};

/// Returns the finding about an entry of a kustomization file that would cause a cycle in the build.
///
/// - `folder` is the folder to which the entry refers. It is equal to `visited`, or a parent folder of `visited`.
/// - `visited` is a folder that is already being built.
/// - `chain` contains all folders that are being built. The first is the folder where the build starts, and the last is
///   the folder with the entry.
pub(in crate::kustomize) fn found(
    site: Site,
    entry: &str,
    folder: &TreePath,
    visited: &TreePath,
    chain: &[TreePath],
) -> TreeFinding {
    let way: Vec<_> = chain.iter().chain([folder]).map(ToString::to_string).collect();
    let way = way.join(" → ");
    let finding = if folder == visited {
        let loops = if chain.last() == Some(folder) {
            "is this folder itself".to_owned()
        } else {
            format!("creates a cycle: {way}")
        };
        RULE.at(site, format!("\"{entry}\" {loops}"))
    } else {
        RULE.at(site, format!("\"{entry}\" is an ancestor: {folder} contains {visited}, which is being built ({way})"))
    };
    finding
        .found(folder.to_string())
        .help("move the shared files to a folder beside this one, and refer to that folder")
}

/// Returns a finding about an entry of a kustomization file that leads to a folder above the root folder of the tree.
/// `chain` contains all folders that are being built. The last one is the folder with the entry.
pub(in crate::kustomize) fn above_tree(site: Site, entry: &str, chain: &[TreePath]) -> TreeFinding {
    let here = chain.last().map(ToString::to_string).unwrap_or_default();
    RULE.at(site, format!("\"{entry}\" is an ancestor of {here}, above the whole tree"))
        .help("refer to a folder beside this one")
}
