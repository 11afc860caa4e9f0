//! KZ010: a path that leads out of the folder of the kustomization, or out of the kustomize tree.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::tree::TreePath;
use crate::rule::RuleInfo;

/// The rule definition of KZ010.
pub(super) static RULE: RuleInfo = RuleInfo {
    id: "KZ010",
    name: "path-not-allowed",
    level: Level::Deny,
    summary: "an absolute path, or a path outside of the folder from which files may be loaded",
    page: include_str!("../../../docs/rules/KZ010.md"),
};

/// Returns a finding about a file that is outside of the folder of the kustomization. `root` is this folder.
pub(in crate::kustomize) fn restricted(site: Site, entry: &str, file: &TreePath, root: &TreePath) -> TreeFinding {
    RULE.at(site, format!("\"{entry}\" is the file {file}, which is not in or below {root}"))
        .found(file.to_string())
        .allowed(format!("files in or below {root}"))
        .help(
            "refer to its folder and add a kustomization file there, or copy the file; --load-restrictor none disables \
             this check",
        )
}

/// Returns a finding about an entry of a kustomization file that is an absolute path to a folder. `relative` is the
/// relative path that the finding suggests, if it is known.
pub(in crate::kustomize) fn absolute(site: Site, entry: &str, relative: Option<&str>) -> TreeFinding {
    let finding = RULE.at(site, format!("\"{entry}\" is an absolute path")).allowed("relative paths");
    match relative {
        Some(relative) => finding.help(format!("write \"{relative}\"")),
        None => finding.help("write it relative to this folder"),
    }
}

/// Returns a finding about an entry of a kustomization file whose path leads out of the kustomize tree.
pub(in crate::kustomize) fn outside(site: Site, entry: &str) -> TreeFinding {
    RULE.at(site, format!("\"{entry}\" is outside of the files that are built"))
        .help("keep all referenced files in the same source")
}

/// Returns a finding about an entry of a kustomization file with `..` inside a longer name, such as `a..b`.
pub(in crate::kustomize) fn ambiguous(site: Site, entry: &str) -> TreeFinding {
    RULE.at(site, format!("\"{entry}\" has \"..\" within a name, which kustomize rejects after version 5.8"))
        .help("rename the folder, or check the indentation of the line")
}
