//! KZ006: several kustomization files.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rule::{TreeExample, TreePage, TreeRule};
use crate::kustomize::tree::TreePath;

/// The row of KZ006.
pub(in crate::kustomize) static RULE: TreeRule = TreeRule {
    id: "KZ006",
    name: "several-kustomization-files",
    level: Level::Deny,
    summary: "a folder with more than one kustomization file",
    page: TreePage {
        why: "kustomize looks for three names, and refuses a folder that has more than one of them.",
        wrong: TreeExample::new(
            "app",
            &[("app/kustomization.yaml", "resources: []\n"), ("app/kustomization.yml", "resources: []\n")],
        ),
        right: TreeExample::new("app", &[("app/kustomization.yaml", "resources: []\n")]),
        mend: "Keep one of them.",
    },
};

/// A finding about a folder that has all of `names`.
pub(in crate::kustomize) fn found(site: Site, folder: &TreePath, names: &[&str]) -> TreeFinding {
    RULE.finding(site, format!("{folder} has several kustomization files: {}", names.join(", ")))
        .found(names.join(", "))
        .allowed("one of them")
        .help("keep one of them")
}
