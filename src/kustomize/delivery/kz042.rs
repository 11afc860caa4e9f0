//! KZ042: a path that leads out of its source.

use super::flux::SCOPE;
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::kustomize::tree::TreePath;
use crate::rule::{Example, Page, Rule};

/// The row of KZ042.
pub(super) static RULE: Rule = Rule {
    id: "KZ042",
    name: "flux-path-leaves-source",
    level: Level::Warn,
    summary: "a spec.path of a Flux Kustomization that leads out of the source",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "Flux never leaves the source: it takes `../shared` for `shared`. What is built is another folder than the one \
              that is written.",
        wrong: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: apps
  namespace: flux-system
spec:
  interval: 10m
  prune: true
  path: ../shared/apps
  suspend: false
  sourceRef:
    kind: GitRepository
    name: fleet
",
        },
        right: Example {
            stored: "\
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata:
  name: fleet
  namespace: flux-system
spec:
  interval: 1m
  url: https://github.com/org/fleet
",
            operation: Operation::Create,
            object: "\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: apps
  namespace: flux-system
spec:
  interval: 10m
  prune: true
  path: ./shared/apps
  sourceRef:
    kind: GitRepository
    name: fleet
",
        },
        mend: "Write the path from the root of the source.",
    },
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let path = request.object().pointer("/spec/path").and_then(serde_json::Value::as_str).unwrap_or_default();
    if path.contains("${") || !leaves(path) {
        return Vec::new();
    }
    let taken = TreePath::from(path);
    let message = format!("\"{path}\" leads out of the source; Flux takes it for \"{taken}\"");
    vec![
        RULE.finding(FieldPath::of(["spec", "path"]), message)
            .found(path)
            .help("write the path from the root of the source"),
    ]
}

fn leaves(path: &str) -> bool {
    let mut depth = 0_usize;
    for name in path.split('/').filter(|name| !["", "."].contains(name)) {
        match (name, depth) {
            ("..", 0) => return true,
            ("..", _) => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}
