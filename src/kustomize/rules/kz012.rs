//! KZ012: a Component that Flux lists by itself.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rule::{TreeExample, TreePage, TreeRule};
use crate::kustomize::tree::TreePath;

/// The row of KZ012.
pub(super) static RULE: TreeRule = TreeRule {
    id: "KZ012",
    name: "flux-generates-component",
    level: Level::Deny,
    summary: "a Component below a spec.path without kustomization file, which Flux lists as a resource",
    page: TreePage {
        why: "Where `spec.path` has no kustomization file, Flux generates one that lists every folder below with a kustomization file in it as a resource, Components too, which then fails. Adding the component to `spec.components` does not help.",
        wrong: TreeExample::flux(
            "app",
            &[
                (
                    "app/settings.yaml",
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
                    "app/components/ldap/kustomization.yaml",
                    "\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
nameSuffix: -ldap
",
                ),
            ],
        ),
        right: TreeExample::flux(
            "app",
            &[
                (
                    "app/kustomization.yaml",
                    "\
resources:
  - settings.yaml
",
                ),
                (
                    "app/settings.yaml",
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
                    "app/components/ldap/kustomization.yaml",
                    "\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
nameSuffix: -ldap
",
                ),
            ],
        ),
        mend: "Add a kustomization file that lists what is wanted, or move the component out of `spec.path`.",
    },
};

/// A finding about a Component in `folder`, below `root`.
pub(in crate::kustomize) fn found(site: Site, folder: &TreePath, root: &TreePath) -> TreeFinding {
    let message = format!(
        "{root} has no kustomization file: Flux generates one that lists {folder} (kind: Component) as a resource, which fails"
    );
    RULE.finding(site, message).help(format!("add {root}/kustomization.yaml, or move the component out of {root}"))
}
