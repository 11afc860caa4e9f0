//! KZ022: text that kustomize passes over.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rule::{TreeExample, TreePage, TreeRule};

/// The row of KZ022.
pub(super) static RULE: TreeRule = TreeRule {
    id: "KZ022",
    name: "overlooked-text",
    level: Level::Warn,
    summary: "a second document, a repeated key or an odd spelling in a kustomization file",
    page: TreePage {
        why: "kustomize reads only the first document of a kustomization file, takes the last of equal keys, and field names in any case, all without a word. What somebody wrote there and believes in is lost.",
        wrong: TreeExample::new(
            "app",
            &[
                (
                    "app/kustomization.yaml",
                    "\
resources:
  - ../base
---
namePrefix: prod-
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
namePrefix: prod-
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
        mend: "Make one document of it, with every key once, spelled as in the documentation.",
    },
};

/// A finding about a document that is not read.
pub(in crate::kustomize) fn second_document(site: Site) -> TreeFinding {
    RULE.finding(site, "kustomize does not read this second document").harmless().help("make one document of the file")
}

/// A finding about a key whose first value, on line `lost`, is lost.
pub(in crate::kustomize) fn duplicate(site: Site, lost: u32) -> TreeFinding {
    RULE.finding(site, format!("the key is on line {lost} already, and what it says there is lost"))
        .harmless()
        .help("write the key once")
}

/// A finding about a field in another case.
pub(in crate::kustomize) fn other_case(site: Site, name: &str) -> TreeFinding {
    RULE.finding(site, format!("kustomize takes this for \"{name}\""))
        .harmless()
        .allowed(name)
        .help(format!("write \"{name}\""))
}
