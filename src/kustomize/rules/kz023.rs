//! KZ023: reports local folders whose path kustomize treats as the address of a git repository.
//!
//! kustomize then fetches the repository and ignores the folder.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::tree::TreePath;
use crate::rule::RuleInfo;

/// The rule definition of KZ023.
pub(super) static RULE: RuleInfo = RuleInfo {
    id: "KZ023",
    name: "folder-taken-for-git",
    level: Level::Warn,
    summary: "a local folder that kustomize treats as a git repository",
    page: include_str!("../../../docs/rules/KZ023.md"),
};

/// Returns a finding about an entry of a kustomization file that kustomize treats as a git address, although the local
/// folder `local` exists.
pub(in crate::kustomize) fn found(site: Site, entry: &str, local: &TreePath) -> TreeFinding {
    RULE.at(site, format!("\"{entry}\" is fetched from git, although the folder {local} exists"))
        .harmless()
        .help(format!("write \"./{entry}\""))
}
