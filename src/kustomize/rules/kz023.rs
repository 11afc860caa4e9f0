//! KZ023: a folder taken for a repository.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rule::{TreeExample, TreePage, TreeRule};
use crate::kustomize::tree::TreePath;

/// The row of KZ023.
pub(super) static RULE: TreeRule = TreeRule {
    id: "KZ023",
    name: "folder-taken-for-git",
    level: Level::Warn,
    summary: "a local folder that kustomize takes for a git repository",
    page: TreePage {
        why: "An entry such as `github.com/org/repo` or `pkg@v1.2/a/b` is a git address to kustomize, even where a folder of that name is there. It fetches from the network instead.",
        wrong: TreeExample::new(
            "app",
            &[
                (
                    "app/kustomization.yaml",
                    "\
components:
  - github.com/org/repo
",
                ),
                (
                    "app/github.com/org/repo/kustomization.yaml",
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
  - ./github.com/org/repo
",
                ),
                (
                    "app/github.com/org/repo/kustomization.yaml",
                    "\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
nameSuffix: -ldap
",
                ),
            ],
        ),
        mend: "Put `./` in front of the path.",
    },
};

/// A finding about an entry that is the folder `local` as well.
pub(in crate::kustomize) fn found(site: Site, entry: &str, local: &TreePath) -> TreeFinding {
    RULE.finding(site, format!("\"{entry}\" is fetched from git, though the folder {local} is there"))
        .harmless()
        .help(format!("write \"./{entry}\""))
}
