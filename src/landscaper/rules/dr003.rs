//! DR003: reports a second fragment for the same object.

use std::collections::HashMap;

use super::WRITES;
use crate::admission::{Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::dry_run::fragment::fragments;
use crate::landscaper::kinds::{self, DRY_RUN_CONFIGURATIONS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&DRY_RUN_CONFIGURATIONS, WRITES, Outage::Refuse)];

/// The rule definition of DR003.
pub(super) static RULE: Rule = Rule {
    id: "DR003",
    name: "two-fragments-for-one-object",
    level: Level::Deny,
    summary: "two fragments for the same object",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "An export reads the first fragment for its object. Further fragments for the object are ignored.",
        wrong: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DryRunConfiguration
metadata:
  name: test-dry-run
  namespace: cu-example
spec:
  exports:
    - apiVersion: v1
      kind: Secret
      metadata: {name: test-secret, namespace: example}
      data: {token: dG9rZW4=}
    - apiVersion: v1
      kind: Secret
      metadata: {name: test-secret, namespace: example}
      data: {user: dXNlcg==}
",
        },
        right: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DryRunConfiguration
metadata:
  name: test-dry-run
  namespace: cu-example
spec:
  exports:
    - apiVersion: v1
      kind: Secret
      metadata: {name: test-secret, namespace: example}
      data: {token: dG9rZW4=, user: dXNlcg==}
",
        },
        mend: "Put all fields of the object into one fragment.",
    },
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mut first = HashMap::new();
    let mut findings = Vec::new();
    for fragment in fragments(request.object()) {
        let identity = fragment.identity();
        if identity.name.is_empty() {
            continue;
        }
        if let Some(earlier) = first.get(&identity) {
            let message = format!("is ignored: spec.exports[{earlier}] is already a fragment for {identity}");
            findings.push(RULE.finding(fragment.field(), message).help("put all fields into one fragment"));
        } else {
            first.insert(identity, fragment.index);
        }
    }
    findings
}
