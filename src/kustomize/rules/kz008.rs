//! KZ008: a file that cannot be read.

use crate::admission::Level;
use crate::kustomize::file::{Fault, FaultKind};
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rule::{TreeExample, TreePage, TreeRule};

/// The row of KZ008.
pub(super) static RULE: TreeRule = TreeRule {
    id: "KZ008",
    name: "unreadable-kustomization",
    level: Level::Deny,
    summary: "a kustomization file that is not YAML, says nothing, or has unknown fields or wrong types",
    page: TreePage {
        why: "kustomize reads YAML 1.1, where `yes`, `no`, `on`, `off`, `y` and `n` are booleans and not strings, and refuses unknown fields at every level. A file that says nothing but its kind is refused as empty. Flux rewrites the root's file before it builds it, and so drops unknown fields there.",
        wrong: TreeExample::new(
            "app",
            &[
                (
                    "app/kustomization.yaml",
                    "\
resource:
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
        mend: "Correct the field; put strings that look like something else into quotes.",
    },
};

/// A finding about a text that is not YAML.
pub(in crate::kustomize) fn malformed(site: Site, problem: &str) -> TreeFinding {
    RULE.finding(site, format!("this cannot be read: {problem}")).help("correct the YAML; tabs do not indent")
}

/// A finding about a key that a configuration has twice, which kustomize decodes strictly.
pub(in crate::kustomize) fn twice(site: Site) -> TreeFinding {
    let message = format!("the key {} is there twice", site.field);
    RULE.finding(site, message).help("keep one of them")
}

/// A finding about a file that says nothing.
pub(in crate::kustomize) fn empty(site: Site, component: bool) -> TreeFinding {
    let help = if component {
        "say what the component does, or take it out"
    } else {
        "list what is to be built under \"resources:\""
    };
    RULE.finding(site, "the kustomization file says nothing").help(help)
}

/// Returns a finding about an unknown field that Flux leaves out of the root's file.
pub(in crate::kustomize) fn ignored(site: Site, fault: &Fault) -> TreeFinding {
    let (finding, _) = self::fault(site, fault);
    TreeFinding { level: Level::Warn, message: format!("{}; Flux leaves it out", finding.message), ..finding }
        .harmless()
}

/// A finding about an unknown field or a wrong type, and whether it is an unknown field.
pub(in crate::kustomize) fn fault(site: Site, fault: &Fault) -> (TreeFinding, bool) {
    match &fault.kind {
        FaultKind::Unknown { key, of, allowed, near } => {
            let help = match (near, *of) {
                (Some(near), _) => format!("did you mean \"{near}\"?"),
                (None, "Kustomization") if key == "spec" => {
                    "an object of Flux or Argo CD belongs in a file of another name".to_owned()
                }
                _ => "take it out".to_owned(),
            };
            let finding = RULE.finding(site, format!("there is no field \"{key}\" in {of}"));
            (finding.found(key.clone()).allowed(allowed.join(", ")).help(help), true)
        }
        FaultKind::Type { expected, found } => {
            let quoted = if found == "true" || found == "false" {
                "YAML takes yes, no, on, off, y and n for booleans: put the value into quotes"
            } else {
                "write it as it is wanted, with quotes if it is a string"
            };
            let finding = RULE.finding(site, format!("{found} stands where {expected} is wanted"));
            (finding.found(found.clone()).allowed(*expected).help(quoted), false)
        }
    }
}
