//! KZ020: a Component that is built.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rule::{TreeExample, TreePage, TreeRule};
use crate::kustomize::tree::TreePath;

/// The row of KZ020.
pub(super) static RULE: TreeRule = TreeRule {
    id: "KZ020",
    name: "component-as-root",
    level: Level::Warn,
    summary: "a build root that is a Component",
    page: TreePage {
        why: "kustomize builds a Component as readily as a Kustomization, but a Component by itself has nothing to work on: mostly the result is empty. A Flux Kustomization with `prune: true` that is pointed at one deletes all it had applied.",
        wrong: TreeExample::new(
            "components/ldap",
            &[(
                "components/ldap/kustomization.yaml",
                "\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
nameSuffix: -ldap
",
            )],
        ),
        right: TreeExample::new(
            "app",
            &[
                (
                    "app/kustomization.yaml",
                    "\
resources:
  - ../base
components:
  - ../components/ldap
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
        mend: "Build a Kustomization that lists the Component.",
    },
};

/// A finding about the root, whose kind is said at `site`.
pub(in crate::kustomize) fn found(site: Site, root: &TreePath) -> TreeFinding {
    RULE.finding(
        site,
        format!("{root} is a Component: built by itself it mostly applies nothing, and with pruning that deletes"),
    )
    .harmless()
    .found("kind: Component")
    .help("build a Kustomization that lists it under \"components:\"")
}
