//! KZ009: an ancestor.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rule::{TreeExample, TreePage, TreeRule};
use crate::kustomize::tree::TreePath;

/// The row of KZ009.
pub(super) static RULE: TreeRule = TreeRule {
    id: "KZ009",
    name: "ancestor-reference",
    level: Level::Deny,
    summary: "an entry that leads to a folder around one that is being built",
    page: TreePage {
        why: "kustomize refuses to build a folder that is, or holds, any folder on the way to it. It calls this a cycle; often there is no loop, the entry just leads to a folder higher up, which may have nothing to do with this one.",
        wrong: TreeExample::new(
            "app/prod",
            &[
                ("app/kustomization.yaml", "resources: []\n"),
                (
                    "app/prod/kustomization.yaml",
                    "\
resources:
  - ..
",
                ),
            ],
        ),
        right: TreeExample::new(
            "app/prod",
            &[
                ("app/base/kustomization.yaml", "resources: []\n"),
                (
                    "app/prod/kustomization.yaml",
                    "\
resources:
  - ../base
",
                ),
            ],
        ),
        mend: "Move what is shared into a folder of its own beside the others, and let each of them refer to it.",
    },
};

/// A finding about an entry that leads to `folder`, in which `visited` is being built; `chain` leads from the root here.
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
            format!("closes a cycle: {way}")
        };
        RULE.finding(site, format!("\"{entry}\" {loops}"))
    } else {
        RULE.finding(
            site,
            format!("\"{entry}\" is an ancestor: {folder} holds {visited}, which is being built ({way})"),
        )
    };
    finding.found(folder.to_string()).help("move what is shared into a folder beside this one, and refer to that")
}

/// A finding about an entry that leads above the whole tree.
pub(in crate::kustomize) fn above_all(site: Site, entry: &str, chain: &[TreePath]) -> TreeFinding {
    let here = chain.last().map(ToString::to_string).unwrap_or_default();
    RULE.finding(site, format!("\"{entry}\" is an ancestor of {here}, above the whole tree"))
        .help("refer to a folder beside this one")
}
