//! KZ005: reports a folder that must be built but contains no kustomization file.

use crate::admission::Level;
use crate::kustomize::file::NAMES;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::tree::TreePath;
use crate::rule::RuleInfo;

/// The rule definition of KZ005.
pub(super) static RULE: RuleInfo = RuleInfo {
    id: "KZ005",
    name: "no-kustomization-file",
    level: Level::Deny,
    summary: "a folder that is to be built but has no kustomization file",
    page: include_str!("../../../docs/rules/KZ005.md"),
};

/// Returns a finding about a folder without a kustomization file. `entry` is the entry that refers to the folder;
/// `None` if the build starts at the folder. `names` contains the names of the files in the folder.
pub(in crate::kustomize) fn found(site: Site, entry: Option<&str>, folder: &TreePath, names: &[String]) -> TreeFinding {
    let what = entry.map_or_else(|| format!("{folder} has"), |entry| format!("\"{entry}\" is a folder with"));
    let finding = RULE
        .at(site, format!("{what} no kustomization file"))
        .allowed("kustomization.yaml, kustomization.yml or Kustomization");
    let near = names.iter().find(|name| name.to_lowercase().starts_with("kustomiz"));
    match near {
        Some(name) if NAMES.contains(&name.as_str()) => finding.help(format!(
            "replace {folder}/{name} with a file: it is a folder, or a link that points outside of {folder}"
        )),
        Some(name) => finding.help(format!("rename {folder}/{name} to kustomization.yaml")),
        None => finding.help(format!("add {folder}/kustomization.yaml")),
    }
}
