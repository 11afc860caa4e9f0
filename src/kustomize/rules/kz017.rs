//! KZ017: a setting that is refused.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rule::{TreeExample, TreePage, TreeRule};

/// The row of KZ017.
pub(super) static RULE: TreeRule = TreeRule {
    id: "KZ017",
    name: "bad-setting",
    level: Level::Deny,
    summary: "sort options, variables, schemas or replacements that kustomize refuses",
    page: TreePage {
        why: "Some fields are looked at only when all else is done: the sort order must be `fifo` or `legacy`, variables must have names of their own in all that is built, a replacement needs a source and targets with the fields it names.",
        wrong: TreeExample::new(
            "app",
            &[
                (
                    "app/kustomization.yaml",
                    "\
resources:
  - ../base
sortOptions:
  order: alphabetical
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
sortOptions:
  order: fifo
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
        mend: "Correct the field.",
    },
};

/// A finding about `openapi.version`.
pub(in crate::kustomize) fn schema_version(site: Site, version: &str, built_in: &str) -> TreeFinding {
    RULE.finding(site, format!("the schema {version} is not built in"))
        .found(version)
        .allowed(built_in)
        .help("take it out")
}

/// A finding about an entry of `crds`.
pub(in crate::kustomize) fn crds(site: Site, entry: &str, why: &str) -> TreeFinding {
    RULE.finding(site, format!("\"{entry}\" {why}"))
        .allowed("schemas by name")
        .help("correct the file, or take the entry out")
}

/// A finding about a variable whose name is taken.
pub(in crate::kustomize) fn var(site: Site, name: &str, before: &Site) -> TreeFinding {
    RULE.finding(site, format!("the variable {name} is there already ({before})"))
        .found(name)
        .help("give it another name")
}

/// A finding about `sortOptions.order`.
pub(in crate::kustomize) fn sort_order(site: Site, order: &str) -> TreeFinding {
    RULE.finding(site, format!("there is no order \"{order}\""))
        .found(order)
        .allowed("fifo or legacy")
        .help("write fifo or legacy")
}

/// A finding about `sortOptions.legacySortOptions`.
pub(in crate::kustomize) fn sort_legacy(site: Site) -> TreeFinding {
    RULE.finding(site, "the order fifo has no options").help("take the options out, or write order: legacy")
}

/// A finding about a replacement.
pub(in crate::kustomize) fn replacement(site: Site, why: &str) -> TreeFinding {
    RULE.finding(site, format!("the replacement {why}")).help("correct it")
}
