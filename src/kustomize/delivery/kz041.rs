//! KZ041: a tree that could not be judged.

use super::flux::{SCOPE, SourceRef, confirm, subject};
use super::source::{self, Known};
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::rule::{Example, Page, Rule};

/// The row of KZ041.
pub(super) static RULE: Rule = Rule {
    id: "KZ041",
    name: "tree-not-judged",
    level: Level::Warn,
    summary: "a tree that could not be judged when the object was admitted",
    scope: &SCOPE,
    looks_up: &source::SOURCES,
    confirm: Some(confirm),
    check,
    page: Page {
        why: "A Flux Kustomization points at a folder of what its source has. Where the source is not there yet, has nothing \
              yet, or does not hand it over in time, nobody knows what will be built. The request goes on: nothing that is \
              merely late is refused. The same is said of a tree in an object that cannot be unpacked.",
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
  path: ./clusters/prod
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
status:
  artifact:
    url: http://source-controller.flux-system.svc.cluster.local./gitrepository/flux-system/fleet/1f3c.tar.gz
    digest: sha256:4d5bd1b5e7d1bf8f05db2ae0a8a8a5f9a9b4d9d64f1d6bcfe7c8e0dc2e5a9b11
    revision: main@sha1:1f3c
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
  path: ./clusters/prod
  sourceRef:
    kind: GitRepository
    name: fleet
",
        },
        mend: "Apply the source first, and the Kustomization once `kubectl get` shows its revision. Where the tree cannot be \
               fetched, the message says why: a host that is not allowed goes into `artifactHosts` of the configuration, \
               and a NetworkPolicy must let portcullis reach source-controller.",
    },
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let Some(kustomization) = subject(request) else { return Vec::new() };
    let SourceRef { kind, namespace, name } = &kustomization.source;
    let Some(known) = source::kind(kind) else { return Vec::new() };
    let why = match source::find(view, known, namespace, name) {
        Known::Missing => "is not there",
        Known::Empty => "has no artifact yet",
        Known::Artifact(..) | Known::Unknown => return Vec::new(),
    };
    let message = format!("the tree is not judged: {kind} {namespace}/{name} {why}");
    vec![found(FieldPath::of(["spec", "sourceRef"]), &message)]
}

/// A finding that says what is not judged, and why.
pub(super) fn found(field: FieldPath, message: &str) -> Finding {
    RULE.finding(field, message).help("the request goes on; `portcullis check` judges the same tree from files")
}

/// Returns a finding for the audit log that says why what was found in a tree is not denied.
pub(super) fn capped(field: FieldPath, why: &str) -> Finding {
    let message = format!("what was found in the tree is a warning whatever the configuration says: {why}");
    Finding::new(RULE.id, Level::Audit, field, message)
}
