//! KZ002: a Kustomization among components.

use crate::admission::Level;
use crate::kustomize::finding::Fix;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rule::{TreeExample, TreePage, TreeRule};

/// The row of KZ002.
pub(in crate::kustomize) static RULE: TreeRule = TreeRule {
    id: "KZ002",
    name: "kustomization-as-component",
    level: Level::Deny,
    summary: "a Kustomization listed as a component",
    page: TreePage {
        why: "Only folders of kind Component may stand under `components`. A kustomization file that says no kind is a Kustomization, so that a component whose `kind` was forgotten is refused here too.",
        wrong: TreeExample::new(
            "app",
            &[
                (
                    "app/kustomization.yaml",
                    "\
components:
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
        mend: "Move the entry to `resources`, which `portcullis check --fix` does; or, if it is meant to change the objects of whoever lists it, give it `apiVersion: kustomize.config.k8s.io/v1alpha1` and `kind: Component`.",
    },
};

/// A finding about an entry of `components` that leads to a Kustomization; `said` whether its file says so.
pub(in crate::kustomize) fn found(site: Site, index: usize, entry: &str, defined: &Site, said: bool) -> TreeFinding {
    let why = if said { "" } else { ", as it says no kind" };
    RULE.finding(site, format!("\"{entry}\" is a Kustomization{why} ({defined})"))
        .found(if said { "kind: Kustomization" } else { "no kind" })
        .allowed("folders of kind Component")
        .help(
            "list it under \"resources:\", or make it a Component: apiVersion kustomize.config.k8s.io/v1alpha1, kind \
             Component",
        )
        .fix(Fix::MoveEntry { from: "components".to_owned(), index, to: "resources".to_owned() })
}
