//! KZ001: a Component in a list of resources.

use crate::admission::Level;
use crate::kustomize::finding::Fix;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rule::{TreeExample, TreePage, TreeRule};

/// The row of KZ001.
pub(in crate::kustomize) static RULE: TreeRule = TreeRule {
    id: "KZ001",
    name: "component-as-resource",
    level: Level::Deny,
    summary: "a Component listed as a resource, base, generator, transformer or validator",
    page: TreePage {
        why: "A Component is a part: it works on the objects of the kustomization that lists it under `components`. Listed under `resources`, kustomize refuses it, with a message that begins with an irrelevant complaint about files and names the entry only at its end. `kustomize edit add resource` and `kustomize create --recursive` write this mistake themselves.",
        wrong: TreeExample::new(
            "app",
            &[
                (
                    "app/kustomization.yaml",
                    "\
resources:
  - ../base
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
        mend: "Move the entry to `components`. `portcullis check --fix` does it, and leaves every other byte of the file alone. If the folder is meant to stand for itself, make its kind Kustomization.",
    },
};

/// A finding about entry `index` of a list that leads to a Component, whose kind is said at `defined`.
pub(in crate::kustomize) fn found(site: Site, list: &str, index: usize, entry: &str, defined: &Site) -> TreeFinding {
    let message = format!("\"{entry}\" is a kustomize Component ({defined})");
    let finding = RULE.finding(site, message).found("kind: Component");
    match list {
        "resources" | "bases" => finding
            .allowed("files of objects, and folders of kind Kustomization")
            .help(format!("list it under \"components:\" instead of \"{list}:\""))
            .fix(Fix::MoveEntry { from: list.to_owned(), index, to: "components".to_owned() }),
        _ => finding
            .allowed(format!("configurations of plugins; {list} takes no Components"))
            .help(format!("list it under \"components:\", or give {list} the plugin's configuration itself")),
    }
}
