//! KZ015: a plugin that does not run.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rule::{TreeExample, TreePage, TreeRule};

/// The row of KZ015.
pub(super) static RULE: TreeRule = TreeRule {
    id: "KZ015",
    name: "plugin-disabled",
    level: Level::Deny,
    summary: "a Helm chart or an external plugin, which are off unless asked for",
    page: TreePage {
        why: "Helm charts need `--enable-helm`, plugins of one's own need `--enable-alpha-plugins`; without them kustomize refuses. Flux enables neither.",
        wrong: TreeExample::new(
            "app",
            &[
                (
                    "app/kustomization.yaml",
                    "\
generators:
  - plugin.yaml
",
                ),
                (
                    "app/plugin.yaml",
                    "\
apiVersion: example.org/v1
kind: Maker
metadata:
  name: make
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
        mend: "Enable it where the tree is built, and say so to `portcullis check`; or write the result of the plugin into the tree.",
    },
};

/// A finding about Helm charts.
pub(in crate::kustomize) fn helm(site: Site) -> TreeFinding {
    RULE.finding(site, "Helm charts are not inflated unless that is enabled")
        .help("build with --enable-helm, or render the chart into the tree")
}

/// A finding about a plugin of one's own.
pub(in crate::kustomize) fn external(site: Site, kind: &str) -> TreeFinding {
    RULE.finding(site, format!("the external plugin {kind} does not run unless that is enabled"))
        .help("build with --enable-alpha-plugins, or use a built-in one: apiVersion builtin")
}

/// A finding about a plugin that is not built in, or not of the sort that a list takes.
pub(in crate::kustomize) fn unknown(site: Site, kind: &str, list: &str) -> TreeFinding {
    RULE.finding(site, format!("{kind} is no built-in plugin that {list} takes"))
        .found(kind)
        .help("look at its kind, and at the list it stands in")
}
