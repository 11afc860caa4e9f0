//! KZ003: a file among components.

use crate::admission::Level;
use crate::kustomize::file::NAMES;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rule::{TreeExample, TreePage, TreeRule};
use crate::kustomize::tree::TreePath;

/// The row of KZ003.
pub(super) static RULE: TreeRule = TreeRule {
    id: "KZ003",
    name: "file-as-component",
    level: Level::Deny,
    summary: "a file where only a folder can stand",
    page: TreePage {
        why: "Entries of `components` are folders with a kustomization file in them. The file of the component itself, and files of objects, are refused with a message about directories that does not say which list is meant.",
        wrong: TreeExample::new(
            "app",
            &[
                (
                    "app/kustomization.yaml",
                    "\
components:
  - ../components/ldap/kustomization.yaml
",
                ),
                (
                    "components/ldap/kustomization.yaml",
                    "\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
nameSuffix: -ldap
",
                ),
            ],
        ),
        right: TreeExample::new(
            "app",
            &[
                (
                    "app/kustomization.yaml",
                    "\
components:
  - ../components/ldap
",
                ),
                (
                    "components/ldap/kustomization.yaml",
                    "\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
nameSuffix: -ldap
",
                ),
            ],
        ),
        mend: "Name the folder of the component. A file of objects belongs under `resources`, of the component or of the kustomization.",
    },
};

/// A finding about an entry that is the file at `path`.
pub(in crate::kustomize) fn found(site: Site, entry: &str, path: &TreePath) -> TreeFinding {
    let folder = entry.rsplit_once('/').map_or(".", |(folder, _)| folder);
    let is_kustomization = NAMES.contains(&path.name());
    let help = if is_kustomization {
        format!("name its folder: {folder}")
    } else {
        "list files of objects under \"resources:\"".to_owned()
    };
    let what = if is_kustomization { "a kustomization file, not its folder" } else { "a file" };
    RULE.finding(site, format!("\"{entry}\" is {what}; components are folders"))
        .found("a file")
        .allowed("folders of kind Component")
        .help(help)
}
