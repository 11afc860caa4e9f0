//! KZ004: reports an entry of a kustomization file if the file or folder to which the entry refers does not exist.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::tree::TreePath;
use crate::rule::RuleInfo;

/// The rule definition of KZ004.
pub(in crate::kustomize) static RULE: RuleInfo = RuleInfo {
    id: "KZ004",
    name: "entry-missing",
    level: Level::Deny,
    summary: "an entry that refers to no existing file or folder",
    page: include_str!("../../../docs/rules/KZ004.md"),
};

/// Returns a finding about `entry`, an entry of a kustomization file. The path in the entry does not exist. Paths of
/// entries are relative to `folder`, the folder of the kustomization file. The finding suggests a correct path if one
/// is known.
///
/// - `near` is the most similar existing path.
/// - `elsewhere` is the correct path relative to `folder`. It is set if the entry is a valid path from the root of the
///   file tree.
pub(in crate::kustomize) fn missing(
    site: Site,
    entry: &str,
    folder: &TreePath,
    near: Option<String>,
    elsewhere: Option<String>,
) -> TreeFinding {
    let finding = RULE.at(site, format!("\"{entry}\" does not exist"));
    match (near, elsewhere) {
        (Some(near), _) => finding.help(format!("did you mean \"{near}\"?")),
        (None, Some(path)) => finding
            .help(format!("paths are relative to {folder}, not to the root of the tree; from here it is \"{path}\"")),
        _ if entry.contains(['*', '?']) => finding.help("patterns are not expanded: list every file"),
        _ if entry.contains('\\') => finding.help("write paths with /"),
        _ if entry.contains('\n') => {
            finding.help("inline objects are not allowed here: write them to a file, and list the file")
        }
        _ => finding.help(format!("paths are relative to {folder}")),
    }
}

/// Returns a finding about a folder to build that does not exist. `near` is the most similar existing folder.
pub(in crate::kustomize) fn absent_root(site: Site, near: Option<String>) -> TreeFinding {
    let finding = RULE.at(site.clone(), format!("\"{}\" does not exist", site.file));
    match near {
        Some(near) => finding.help(format!("did you mean \"{near}\"?")),
        None => finding.help("write the path relative to the root of the tree, as it is in the revision that is built"),
    }
}

/// Returns whether `finding` was created by [`absent_root`].
pub(in crate::kustomize) fn is_absent_root(finding: &TreeFinding) -> bool {
    finding.rule == RULE.id && finding.field.is_root()
}

/// Returns a finding about an entry of a kustomization file that is an empty string.
pub(in crate::kustomize) fn empty(site: Site) -> TreeFinding {
    RULE.at(site, "the entry is empty").help("remove it, or write a path")
}

/// Returns a finding about an entry of a kustomization file that leads into a cycle of symbolic links.
pub(in crate::kustomize) fn link_loop(site: Site, entry: &str) -> TreeFinding {
    RULE.at(site, format!("\"{entry}\" leads into a cycle of symbolic links"))
        .help("point the link to a file or folder")
}

/// Returns a finding about an entry of a kustomization file that leads to a folder instead of a file.
pub(in crate::kustomize) fn folder(site: Site, entry: &str, path: &TreePath) -> TreeFinding {
    RULE.at(site, format!("\"{entry}\" is a folder ({path}), but must be a file"))
        .found("a folder")
        .allowed("a file")
        .help("write the path of a file")
}
