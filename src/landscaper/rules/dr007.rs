//! DR007: reports objects that name a DryRunConfiguration without the dry-run annotation.

use super::WRITES;
use crate::admission::{Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::annotations::{CONFIGURATION_ANNOTATION, DRY_RUN_ANNOTATION};
use crate::landscaper::dry_run::{dry_run_annotations, unless_unchanged};
use crate::landscaper::dry_run_annotations::{DryRunAnnotations, annotation};
use crate::landscaper::kinds::{self, DEPLOY_ITEMS, EXECUTIONS, INSTALLATIONS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 3] = [
    kinds::matches(&INSTALLATIONS, WRITES, Outage::Admit).reading(&[]),
    kinds::matches(&DEPLOY_ITEMS, WRITES, Outage::Admit),
    kinds::matches(&EXECUTIONS, WRITES, Outage::Admit),
];

/// The rule definition of DR007.
pub(super) static RULE: Rule = Rule {
    id: "DR007",
    name: "configuration-without-dry-run",
    level: Level::Deny,
    summary: "an object that names a DryRunConfiguration but has no dry-run annotation",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "The name of a DryRunConfiguration suggests a dry run. Without `landscaper.gardener.cloud/dry-run: \"true\"`, \
              Landscaper deploys everything. The rule accepts `\"false\"`, which requests a real run explicitly.",
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
        mend: "Add `landscaper.gardener.cloud/dry-run: \"true\"`; for a real run, remove the other annotation.",
    },
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let annotations = DryRunAnnotations::of(request.object());
    let (None, Some(name)) = (annotations.dry_run, annotations.configuration) else { return Vec::new() };
    let message =
        format!("names DryRunConfiguration {name:?}, but without {DRY_RUN_ANNOTATION} everything is deployed");
    let mut finding = RULE.finding(annotation(CONFIGURATION_ANNOTATION), message).found(name);
    finding.level = unless_unchanged(request, finding.level, dry_run_annotations);
    vec![finding.help(format!("add {DRY_RUN_ANNOTATION}: \"true\", or remove this annotation"))]
}
