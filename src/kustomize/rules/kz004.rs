//! KZ004: an entry of a kustomization file that refers to a file or folder that does not exist.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::tree::TreePath;
use crate::rule::RuleInfo;

/// The rule definition of KZ004.
pub(in crate::kustomize) static RULE: RuleInfo = RuleInfo {
    id: "KZ004",
    name: "entry-missing",
    level: Level::Deny,
    summary: "an entry that leads to no file or folder",
    page: include_str!("../../../docs/rules/KZ004.md"),
};

/// Returns a finding about an entry of a kustomization file that refers to a path that does not exist. Paths of entries
/// are relative to `folder`, the folder of this file. The finding suggests a correct path if one is known.
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
    let finding = RULE.at(site, format!("\"{entry}\" is not there"));
    match (near, elsewhere) {
        (Some(near), _) => finding.help(format!("did you mean \"{near}\"?")),
        (None, Some(path)) => finding
            .help(format!("paths are relative to {folder}, not to the root of the tree; from here it is \"{path}\"")),
        _ if entry.contains(['*', '?']) => finding.help("patterns are not expanded: list every file"),
        _ if entry.contains('\\') => finding.help("write paths with /"),
        _ if entry.contains('\n') => finding.help("objects cannot stand here: write them to a file and name it"),
        _ => finding.help(format!("paths are relative to {folder}")),
    }
}

/// Returns a finding about a folder to build that does not exist. `near` is the most similar existing folder.
pub(in crate::kustomize) fn absent_root(site: Site, near: Option<String>) -> TreeFinding {
    let finding = RULE.at(site.clone(), format!("\"{}\" is not there", site.file));
    match near {
        Some(near) => finding.help(format!("did you mean \"{near}\"?")),
        None => finding.help("write the path from the root of the tree, as the revision that is built has it"),
    }
}

/// Returns whether `finding` was created by [`absent_root`].
pub(in crate::kustomize) fn is_absent_root(finding: &TreeFinding) -> bool {
    finding.rule == RULE.id && finding.field.is_root()
}

/// Returns a finding about an entry of a kustomization file that is an empty string.
pub(in crate::kustomize) fn empty(site: Site) -> TreeFinding {
    RULE.at(site, "the entry is empty").help("take it out, or say what it is to be")
}

/// Returns a finding about an entry of a kustomization file that leads into a cycle of symbolic links.
pub(in crate::kustomize) fn link_loop(site: Site, entry: &str) -> TreeFinding {
    RULE.at(site, format!("\"{entry}\" is a link that leads back to itself"))
        .help("let the link lead to a file or folder")
}

/// Returns a finding about an entry of a kustomization file that leads to a folder instead of a file.
pub(in crate::kustomize) fn folder(site: Site, entry: &str, path: &TreePath) -> TreeFinding {
    RULE.at(site, format!("\"{entry}\" is a folder ({path}), and a file must stand here"))
        .found("a folder")
        .allowed("a file")
        .help("name a file")
}
