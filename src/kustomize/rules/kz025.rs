//! KZ025: a patch for nothing.

use crate::admission::Level;
use crate::kustomize::file::Selector;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rule::{TreeExample, TreePage, TreeRule};

/// The row of KZ025.
pub(super) static RULE: TreeRule = TreeRule {
    id: "KZ025",
    name: "target-selects-nothing",
    level: Level::Warn,
    summary: "a patch whose target selects nothing",
    page: TreePage {
        why: "A patch with a target that selects nothing does nothing, without a word: a name that was misspelled, or an object that was renamed since, goes unnoticed.",
        wrong: TreeExample::new(
            "app",
            &[
                (
                    "app/kustomization.yaml",
                    "\
resources:
  - ../base
patches:
  - target:
      kind: Secret
    patch: |-
      - op: remove
        path: /data/color
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
patches:
  - target:
      kind: ConfigMap
    patch: |-
      - op: remove
        path: /data/color
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
        mend: "Correct the target, or take the patch out.",
    },
};

/// A finding about a target that selects none of the objects.
pub(in crate::kustomize) fn found(site: Site, target: &Selector) -> TreeFinding {
    let parts = [&target.kind, &target.name, &target.namespace];
    let said: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).map(String::as_str).collect();
    RULE.finding(site, format!("the target selects nothing: there is no {}", said.join(" ")))
        .harmless()
        .help("correct the target, or take the patch out")
}
