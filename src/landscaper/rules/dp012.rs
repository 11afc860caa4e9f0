//! DP012: reports configurations that the manifest or the helm deployer rejects.

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::deployer::provider::{self, Fault};
use crate::landscaper::deployer::responsibility::Route;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&DEPLOY_ITEMS, WRITES, Outage::Admit).reading(&[&["spec"]])];

/// The rule definition of DP012.
pub(super) static RULE: Rule = Rule {
    id: "DP012",
    name: "configuration-that-its-deployer-rejects",
    level: Level::Deny,
    summary: "a manifest or helm DeployItem whose spec.config its deployer would reject",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "Only the deployer reads `spec.config`, so a missing name or a wrong apiVersion is found only when the \
              deployer processes the DeployItem. The rule makes the first checks of the manifest and the helm \
              deployer: apiVersion, kind, and required fields. It does not check DeployItems of other types. \
              Arguments in `helmDeploymentConfig` that the helm deployer of Landscaper v0.152.0 does not accept are \
              warnings, because a newer deployer may accept them. Accepted are `atomic`, `force`, \
              `skipSchemaValidation`, `takeOwnership`, `timeout` and `wait` for `install` and `upgrade`, and \
              `timeout` and `wait` for `uninstall`.",
        wrong: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DeployItem
metadata:
  name: test-item
  namespace: cu-example
spec:
  type: landscaper.gardener.cloud/helm
  config:
    apiVersion: helm.deployer.landscaper.gardener.cloud/v1alpha2
    kind: ProviderConfiguration
    chart: {ref: example.org/charts/app}
    namespace: app
",
        },
        right: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DeployItem
metadata:
  name: test-item
  namespace: cu-example
spec:
  type: landscaper.gardener.cloud/helm
  config:
    apiVersion: helm.deployer.landscaper.gardener.cloud/v1alpha1
    kind: ProviderConfiguration
    chart: {ref: example.org/charts/app}
    name: app
    namespace: app
",
        },
        mend: "Add the missing fields. Use the apiVersion and kind of the deployer: \
              `manifest.deployer.landscaper.gardener.cloud/v1alpha2` or \
              `helm.deployer.landscaper.gardener.cloud/v1alpha1`, `ProviderConfiguration`.",
    },
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let config = |object: &serde_json::Value| object.pointer("/spec/config").cloned();
    let is_old = request.operation == Operation::Update && config(request.old_object()) == config(request.object());
    let faults = provider::faults(Route::specified(request.object()).type_name, config(request.object()).as_ref());
    let finding = |Fault { level, field, problem, help }| {
        let mut finding = RULE.finding(FieldPath::of(["spec", "config"]).join(&field), problem).help(help);
        finding.level = if is_old { Level::Warn } else { level };
        finding
    };
    faults.into_iter().map(finding).collect()
}
