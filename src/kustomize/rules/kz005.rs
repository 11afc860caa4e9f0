//! KZ005: a folder without a kustomization file.

use crate::admission::Level;
use crate::kustomize::file::NAMES;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rule::{TreeExample, TreePage, TreeRule};
use crate::kustomize::tree::TreePath;

/// The row of KZ005.
pub(super) static RULE: TreeRule = TreeRule {
    id: "KZ005",
    name: "no-kustomization-file",
    level: Level::Deny,
    summary: "a folder that is to be built and has no kustomization file",
    page: TreePage {
        why: "A folder is built by the file `kustomization.yaml`, `kustomization.yml` or `Kustomization` in it, spelled just so. Without one, or where that name is a folder or a link out of the folder, kustomize says that it is unable to find it.",
        wrong: TreeExample::new(
            "app",
            &[
                (
                    "app/kustomization.yaml",
                    "\
resources:
  - ../base
",
                ),
                ("base/kustomize.yaml", "resources: []\n"),
            ],
        ),
        right: TreeExample::new(
            "app",
            &[
                (
                    "app/kustomization.yaml",
                    "\
resources:
  - ../base
",
                ),
                (
                    "base/kustomization.yaml",
                    "\
resources:
  - settings.yaml
",
                ),
                (
                    "base/settings.yaml",
                    "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  color: blue
",
                ),
            ],
        ),
        mend: "Rename the file, add one, or list the files of the folder one by one.",
    },
};

/// A finding about a folder that `entry` leads to, or that is the root; `names` is what is in it.
pub(in crate::kustomize) fn found(site: Site, entry: Option<&str>, folder: &TreePath, names: &[String]) -> TreeFinding {
    let what = entry.map_or_else(|| format!("{folder} has"), |entry| format!("\"{entry}\" is a folder with"));
    let finding = RULE
        .finding(site, format!("{what} no kustomization file"))
        .allowed("kustomization.yaml, kustomization.yml or Kustomization");
    let near = names.iter().find(|name| name.to_lowercase().starts_with("kustomiz"));
    match near {
        Some(name) if NAMES.contains(&name.as_str()) => {
            finding.help(format!("{folder}/{name} is a folder, or a link that leads out of {folder}"))
        }
        Some(name) => finding.help(format!("rename {folder}/{name} to kustomization.yaml")),
        None => finding.help(format!("add {folder}/kustomization.yaml")),
    }
}
