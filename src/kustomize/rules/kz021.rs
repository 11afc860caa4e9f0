//! KZ021: a component twice.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rule::{TreeExample, TreePage, TreeRule};

/// The row of KZ021.
pub(super) static RULE: TreeRule = TreeRule {
    id: "KZ021",
    name: "component-twice",
    level: Level::Warn,
    summary: "a component that works twice on the same objects",
    page: TreePage {
        why: "kustomize applies a component as often as it is listed, by whatever path: prefixes double, and objects that it adds conflict. Flux appends `spec.components` to the file's own list without looking.",
        wrong: TreeExample::new(
            "app",
            &[
                (
                    "app/kustomization.yaml",
                    "\
resources:
  - ../base
components:
  - ../components/ldap
  - ../components/../components/ldap
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
        mend: "List it once.",
    },
};

/// A finding about an entry whose component worked on the same objects `before`.
pub(in crate::kustomize) fn found(site: Site, entry: &str, before: &Site) -> TreeFinding {
    RULE.finding(site, format!("\"{entry}\" is applied a second time (first {before}, {})", before.field))
        .harmless()
        .help("list it once")
}
