//! DR007: a DryRunConfiguration without a dry run.

use super::mark::{Mark, annotation};
use super::{CONFIGURATION_ANNOTATION, DRY_RUN_ANNOTATION, WRITES, unless_unchanged};
use crate::admission::{Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS, EXECUTIONS, INSTALLATIONS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 3] = [
    kinds::matches(&INSTALLATIONS, WRITES, Outage::Admit).reading(&[]),
    kinds::matches(&DEPLOY_ITEMS, WRITES, Outage::Admit),
    kinds::matches(&EXECUTIONS, WRITES, Outage::Admit),
];

/// The row of DR007.
pub(super) static RULE: Rule = Rule {
    id: "DR007",
    name: "configuration-without-dry-run",
    level: Level::Deny,
    summary: "an object that names a DryRunConfiguration and does not say whether it is a dry run",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "Who names a DryRunConfiguration means a dry run. Without `landscaper.gardener.cloud/dry-run: \"true\"` it is none, and \
              everything is deployed. With `\"false\"` it is said that a real run is meant, and nothing is found.",
        wrong: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
metadata:
  name: test-installation
  namespace: cu-example
  annotations:
    landscaper.gardener.cloud/dry-run-configuration: test-dry-run
",
        },
        right: Example {
            stored: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Context
metadata:
  name: default
  namespace: cu-example
---
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
",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
metadata:
  name: test-installation
  namespace: cu-example
  annotations:
    landscaper.gardener.cloud/dry-run: \"true\"
    landscaper.gardener.cloud/dry-run-configuration: test-dry-run
",
        },
        mend: "Add `landscaper.gardener.cloud/dry-run: \"true\"`; for a real run, take the other annotation away.",
    },
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mark = Mark::of(request.object());
    let (None, Some(name)) = (mark.dry_run, mark.configuration) else { return Vec::new() };
    let message =
        format!("names DryRunConfiguration {name:?}, but without {DRY_RUN_ANNOTATION} everything is deployed");
    let mut finding = RULE.finding(annotation(CONFIGURATION_ANNOTATION), message).found(name);
    finding.level = unless_unchanged(request, finding.level, super::marks);
    vec![finding.help(format!("add {DRY_RUN_ANNOTATION}: \"true\", or take this annotation away"))]
}
