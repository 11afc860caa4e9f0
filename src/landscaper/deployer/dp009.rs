//! DP009: the finalizer goes while nothing is being deleted.

use serde_json::Value;

use super::{FINALIZER, UPDATE};
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&DEPLOY_ITEMS, UPDATE, Outage::Admit)];

/// The row of DP009.
pub(super) static RULE: Rule = Rule {
    id: "DP009",
    name: "finalizer-taken-off",
    level: Level::Deny,
    summary: "the finalizer of a DeployItem taken off while it is not being deleted",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "The finalizer keeps a DeployItem until its deployer has uninstalled. Whoever takes it off before the \
              DeployItem is deleted makes its deletion leave everything behind, with nothing left that knows of \
              it. Landscaper, its deployers and `landscaper-cli installations force-delete` all delete first.",
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
        mend: "Delete the DeployItem, and take the finalizer off when all is uninstalled. To delete it without \
              uninstalling, annotate it with `landscaper.gardener.cloud/delete-without-uninstall: \"true\"` first.",
    },
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let was_taken_off = has_finalizer(request.old_object()) && !has_finalizer(request.object());
    if !was_taken_off || request.is_being_deleted() {
        return Vec::new();
    }
    let message =
        format!("{FINALIZER} is taken off, and the DeployItem is not being deleted: nothing would uninstall it");
    let finding = RULE.finding(FieldPath::of(["metadata", "finalizers"]), message).allowed(FINALIZER);
    vec![finding.help("delete the DeployItem first; the finalizer comes off when all is uninstalled")]
}

fn has_finalizer(object: &Value) -> bool {
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    finalizers.is_some_and(|finalizers| finalizers.iter().any(|finalizer| finalizer == FINALIZER))
}
