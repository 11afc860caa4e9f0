//! KZ013: a file that holds no objects.

use crate::admission::Level;
use crate::kustomize::accumulate::keys::KeyFault;
use crate::kustomize::accumulate::manifests::ManifestFault;
use crate::kustomize::file::NAMES;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rule::{TreeExample, TreePage, TreeRule};
use crate::kustomize::walk::{key_words, words};

/// The row of KZ013.
pub(super) static RULE: TreeRule = TreeRule {
    id: "KZ013",
    name: "bad-manifest",
    level: Level::Deny,
    summary: "a file under resources that is not YAML, or holds something without kind or name, or with keys that cannot be written",
    page: TreePage {
        why: "Files under `resources` hold Kubernetes objects: each needs `kind` and `metadata.name`; `generateName` is not enough. A kustomization file listed as a file is taken for an object without a name. A key that is a number, a date or a truth value, such as `data: {1: a}`, or that is there twice, is found only when the object is written or patched with a JSON patch; so is such a key from a generator or from labels, or among an object's annotations, where no quotes help.",
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

/// Returns a finding about an object without an apiVersion, which kustomize builds and Flux refuses.
pub(in crate::kustomize) fn no_api_version(site: Site, object: &str) -> TreeFinding {
    RULE.finding(site, format!("{object} has no apiVersion, and Flux refuses it")).help("give it an apiVersion")
}

/// A finding about a key with which an object cannot be written; `site` is what put it there.
pub(in crate::kustomize) fn key(site: &Site, object: &str, pointer: &str, fault: KeyFault) -> TreeFinding {
    let finding =
        RULE.finding(site.clone(), format!("{object} cannot be written: its key {pointer} {}", key_words(fault)));
    match fault {
        KeyFault::NotText if pointer.starts_with("/metadata/annotations/") => {
            finding.help("kustomize writes the keys of annotations without quotes: a number, a date or a truth value is no key there; name it otherwise")
        }
        KeyFault::NotText => {
            finding.help("a number, a date or a truth value is no key: put it in quotes, or name it otherwise")
        }
        KeyFault::Twice => finding.help("keep one of the two"),
    }
}
