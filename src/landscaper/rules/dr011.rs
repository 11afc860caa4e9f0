//! DR011: reports exports that read objects of the same identity from several targets.

use std::collections::BTreeMap;

use serde_json::Value;

use super::WRITES;
use crate::admission::{Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::dry_run::fragment::Identity;
use crate::landscaper::dry_run::item::items;
use crate::landscaper::dry_run::reading;
use crate::landscaper::dry_run_annotations::DryRunAnnotations;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS, EXECUTIONS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 2] =
    [kinds::matches(&DEPLOY_ITEMS, WRITES, Outage::Admit), kinds::matches(&EXECUTIONS, WRITES, Outage::Admit)];

/// The rule definition of DR011.
pub(super) static RULE: Rule = Rule {
    id: "DR011",
    name: "object-of-several-targets",
    level: Level::Warn,
    summary: "exports of a dry run that read objects of the same name from several targets",
    scope: &SCOPE,
    looks_up: &[&DEPLOY_ITEMS],
    confirm: None,
    check,
    page: Page {
        why: "The fragments of a DryRunConfiguration are not grouped by target. If exports read objects of the same \
              apiVersion, kind, namespace and name from two clusters, both read the same fragment and get the same \
              value. In a real run, the values may differ.",
        wrong: Example {
            stored: "\
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
kind: DeployItem
metadata:
  name: test-item
  namespace: cu-example
  annotations:
    landscaper.gardener.cloud/dry-run: \"true\"
    landscaper.gardener.cloud/dry-run-configuration: test-dry-run
spec:
  type: landscaper.gardener.cloud/kubernetes-manifest
  config:
    apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2
    kind: ProviderConfiguration
    exports:
      exports:
        - key: one
          jsonPath: .data.token
          fromResource: {apiVersion: v1, kind: Secret, name: test-secret, namespace: example}
        - key: two
          jsonPath: .data.token
          fromResource: {apiVersion: v1, kind: Secret, name: test-secret, namespace: example}
          targetName: other-cluster
",
        },
        right: Example {
            stored: "\
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
kind: DeployItem
metadata:
  name: test-item
  namespace: cu-example
  annotations:
    landscaper.gardener.cloud/dry-run: \"true\"
    landscaper.gardener.cloud/dry-run-configuration: test-dry-run
spec:
  type: landscaper.gardener.cloud/kubernetes-manifest
  config:
    apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2
    kind: ProviderConfiguration
    exports:
      exports:
        - key: one
          jsonPath: .data.token
          fromResource: {apiVersion: v1, kind: Secret, name: test-secret, namespace: example}
        - key: two
          jsonPath: .data.token
          fromResource: {apiVersion: v1, kind: Secret, name: test-secret, namespace: example}
",
        },
        mend: "If the values may be the same in a dry run, ignore the warning. Otherwise give the objects different names.",
    },
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let annotations = DryRunAnnotations::of(request.object());
    if !annotations.is_dry_run() {
        return Vec::new();
    }
    let mut targets: BTreeMap<Identity, String> = BTreeMap::new();
    if let Some(name) = annotations.configuration.filter(|_| reads(request.object())) {
        for other in reading::users(&request.namespace, name, view) {
            if other.name() != request.display_name() {
                collect_targets(other.value(), &mut targets);
            }
        }
    }
    compare(request.object(), &mut targets)
}

fn reads(object: &Value) -> bool {
    items(object).is_ok_and(|items| items.iter().any(|item| !item.exports.is_empty()))
}

fn collect_targets(object: &Value, targets: &mut BTreeMap<Identity, String>) {
    for item in items(object).unwrap_or_default() {
        for export in &item.exports {
            if let Some(identity) = &export.from_resource {
                let target = export.target_name.clone().unwrap_or_else(|| item.target.clone());
                targets.entry(identity.clone()).or_insert(target);
            }
        }
    }
}

fn compare(object: &Value, targets: &mut BTreeMap<Identity, String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for item in items(object).unwrap_or_default() {
        for export in &item.exports {
            let Some(identity) = &export.from_resource else { continue };
            let target = export.target_name.as_ref().unwrap_or(&item.target);
            let other = targets.entry(identity.clone()).or_insert_with(|| target.clone());
            if other != target {
                let field = export.field.key("targetName");
                let text = format!(
                    "{identity} is read from two targets, {target:?} and {other:?}: both read the same fragment"
                );
                findings.push(RULE.finding(item.field(&field), item.message(&field, &text)));
            }
        }
    }
    findings
}
