//! DP009: reports a removed finalizer on a DeployItem that is not being deleted.

use serde_json::Value;

use super::UPDATE;
use crate::admission::{FieldPath, Finding, Level, Metadata, Operation, Request};
use crate::catalog::View;
use crate::landscaper::deployer::FINALIZER;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&DEPLOY_ITEMS, UPDATE, Outage::Admit).reading(&[])];

/// The rule definition of DP009.
pub(super) static RULE: Rule = Rule {
    id: "DP009",
    name: "finalizer-taken-off",
    level: Level::Deny,
    summary: "a finalizer that is removed from a DeployItem that is not being deleted",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "The finalizer keeps a DeployItem until its deployer has uninstalled. If you remove it before the \
              DeployItem is deleted, the deletion leaves all deployed objects on the target, and no object refers to \
              them any more. Landscaper, its deployers and `landscaper-cli installations force-delete` delete first.",
        wrong: Example {
            stored: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DeployItem
metadata:
  name: test-item
  namespace: cu-example
  finalizers: [finalizer.landscaper.gardener.cloud]
spec:
  type: landscaper.gardener.cloud/kubernetes-manifest
  config:
    apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2
    kind: ProviderConfiguration
",
            operation: Operation::Update,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DeployItem
metadata:
  name: test-item
  namespace: cu-example
spec:
  type: landscaper.gardener.cloud/kubernetes-manifest
  config:
    apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2
    kind: ProviderConfiguration
",
        },
        right: Example {
            stored: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DeployItem
metadata:
  name: test-item
  namespace: cu-example
  finalizers: [finalizer.landscaper.gardener.cloud]
spec:
  type: landscaper.gardener.cloud/kubernetes-manifest
  config:
    apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2
    kind: ProviderConfiguration
",
            operation: Operation::Update,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DeployItem
metadata:
  name: test-item
  namespace: cu-example
  finalizers: [finalizer.landscaper.gardener.cloud, example.org/another]
spec:
  type: landscaper.gardener.cloud/kubernetes-manifest
  config:
    apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2
    kind: ProviderConfiguration
",
        },
        mend: "Delete the DeployItem, and remove the finalizer when everything is uninstalled. To delete it without \
              uninstalling, annotate it with `landscaper.gardener.cloud/delete-without-uninstall: \"true\"` first.",
    },
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let was_removed = has_finalizer(request.old_object()) && !has_finalizer(request.object());
    if !was_removed || request.is_deleting() {
        return Vec::new();
    }
    let message =
        format!("{FINALIZER} is removed, but the DeployItem is not being deleted: no deployer would uninstall it");
    let finding = RULE.finding(FieldPath::of(["metadata", "finalizers"]), message).allowed(FINALIZER);
    vec![finding.help("delete the DeployItem first; remove the finalizer when everything is uninstalled")]
}

fn has_finalizer(object: &Value) -> bool {
    Metadata::of(object).finalizers().any(|finalizer| finalizer == FINALIZER)
}
