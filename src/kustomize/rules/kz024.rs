//! KZ024: a deprecated field.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rule::{TreeExample, TreePage, TreeRule};

/// The row of KZ024.
pub(in crate::kustomize) static RULE: TreeRule = TreeRule {
    id: "KZ024",
    name: "deprecated-field",
    level: Level::Warn,
    summary: "a field that kustomize warns about",
    page: TreePage {
        why: "kustomize still takes these fields, with a warning, and will drop them.",
        wrong: TreeExample::new(
            "app",
            &[
                (
                    "app/kustomization.yaml",
                    "\
bases:
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
        mend: "Use the field that took its place; `kustomize edit fix` rewrites most of them.",
    },
};

/// A finding about a field, and the one to use.
pub(in crate::kustomize) fn found(site: Site, field: &str, instead: &str) -> TreeFinding {
    RULE.finding(site, format!("\"{field}\" is deprecated"))
        .harmless()
        .allowed(instead)
        .help(format!("use \"{instead}\""))
}
