//! KZ031: a build that fails on the content of objects.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rule::{TreeExample, TreePage, TreeRule};

const OBJECT: &str = "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  color: blue
";

/// The definition of KZ031.
pub(super) static RULE: TreeRule = TreeRule {
    id: "KZ031",
    name: "build-fails",
    level: Level::Deny,
    summary: "a generator, transformer or validator that fails on the objects it is given",
    page: TreePage {
        why: "Some mistakes show only when a transformer meets the objects: a field spec that leads through a scalar, a replacement whose source or target does not exist, a validator that changes something. Where the other rules leave the verdict open, portcullis builds the tree as kustomize does and reports the step that fails.",
        wrong: TreeExample::new(
            "app",
            &[
                (
                    "app/kustomization.yaml",
                    "\
resources:
  - settings.yaml
transformers:
  - labels.yaml
",
                ),
                (
                    "app/labels.yaml",
                    "\
apiVersion: builtin
kind: LabelTransformer
metadata:
  name: labels
labels:
  team: web
fieldSpecs:
  - path: metadata/name/labels
    create: true
",
                ),
                ("app/settings.yaml", OBJECT),
            ],
        ),
        right: TreeExample::new(
            "app",
            &[
                (
                    "app/kustomization.yaml",
                    "\
resources:
  - settings.yaml
transformers:
  - labels.yaml
",
                ),
                (
                    "app/labels.yaml",
                    "\
apiVersion: builtin
kind: LabelTransformer
metadata:
  name: labels
labels:
  team: web
fieldSpecs:
  - path: metadata/labels
    create: true
",
                ),
                ("app/settings.yaml", OBJECT),
            ],
        ),
        mend: "Correct the entry, or the object that it fails on. `portcullis build` reports the same error.",
    },
};

/// A finding about a step that fails.
pub(in crate::kustomize) fn found(site: Site, message: &str) -> TreeFinding {
    RULE.finding(site, message).help("correct the entry, or the object that it fails on")
}
