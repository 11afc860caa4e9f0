//! KZ013: a file that holds no objects.

use crate::admission::Level;
use crate::kustomize::accumulate::manifests::ManifestFault;
use crate::kustomize::file::NAMES;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rule::{TreeExample, TreePage, TreeRule};
use crate::kustomize::walk::words;

/// The row of KZ013.
pub(super) static RULE: TreeRule = TreeRule {
    id: "KZ013",
    name: "bad-manifest",
    level: Level::Deny,
    summary: "a file under resources that is not YAML, or holds something without kind or name",
    page: TreePage {
        why: "Files under `resources` hold Kubernetes objects: each needs `kind` and `metadata.name`; `generateName` is not enough. A kustomization file listed as a file is taken for an object without a name.",
        wrong: TreeExample::new(
            "app",
            &[
                (
                    "app/kustomization.yaml",
                    "\
resources:
  - pod.yaml
",
                ),
                (
                    "app/pod.yaml",
                    "\
apiVersion: v1
kind: Pod
metadata:
  generateName: web-
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
  - pod.yaml
",
                ),
                (
                    "app/pod.yaml",
                    "\
apiVersion: v1
kind: Pod
metadata:
  name: web
",
                ),
            ],
        ),
        mend: "Give the object a kind and a name; name the folder rather than the kustomization file in it.",
    },
};

/// A finding about an entry whose file holds a fault at `at`.
pub(in crate::kustomize) fn found(site: Site, entry: &str, at: &Site, fault: &ManifestFault) -> TreeFinding {
    let finding = RULE.finding(site, format!("\"{entry}\" {} ({at})", words(fault)));
    let folder = entry.rsplit_once('/').map_or(".", |(folder, _)| folder);
    match fault {
        _ if NAMES.contains(&at.file.name()) => {
            finding.help(format!("name the folder, not its kustomization file: {folder}"))
        }
        ManifestFault::NoName(_) => finding.help("give it a metadata.name; generateName is not enough for kustomize"),
        ManifestFault::NoKind => finding.help("give it a kind"),
        _ => finding.help("correct the file, or take the entry out"),
    }
}
