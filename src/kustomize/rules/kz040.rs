//! KZ040: what is not known.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rule::{TreeExample, TreePage, TreeRule};

/// The id of this rule.
pub(in crate::kustomize) const ID: &str = "KZ040";

/// The row of KZ040.
pub(super) static RULE: TreeRule = TreeRule {
    id: ID,
    name: "not-known",
    level: Level::Audit,
    summary: "something that cannot be judged without fetching, rendering or running it",
    page: TreePage {
        why: "A verdict of Accept or Reject is given only where it is certain. What is far away, what plugins do, and some effects of patches are not worked out; the verdict is then Unknown, unless something else is certain to be refused.",
        wrong: TreeExample::new(
            "app",
            &[(
                "app/kustomization.yaml",
                "\
resources:
  - https://github.com/org/repo//base?ref=v1
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
        mend: "Nothing needs mending. `kustomize build` has the last word.",
    },
};

/// A finding about something that is not worked out.
pub(in crate::kustomize) fn found(site: Site, reason: &str) -> TreeFinding {
    RULE.finding(site, reason).harmless().help("kustomize build has the last word")
}
