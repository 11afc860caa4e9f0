//! DP007: the type of a DeployItem changes.

use super::UPDATE;
use crate::admission::{FieldPath, Finding, Level, Operation, Request, json as wire};
use crate::catalog::View;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&DEPLOY_ITEMS, UPDATE, Outage::Admit)];

/// The row of DP007.
pub(super) static RULE: Rule = Rule {
    id: "DP007",
    name: "type-changed",
    level: Level::Deny,
    summary: "a DeployItem whose spec.type changes",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "The type decides which deployer a DeployItem belongs to. If it changes, the old deployer no longer \
              uninstalls what it has deployed, and the new one is asked to update what it does not know. \
              Landscaper itself refuses this.",
        wrong: Example {
            stored: "\
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
            operation: Operation::Update,
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
        right: Example {
            stored: "\
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
    manifests: []
",
        },
        mend: "Delete the DeployItem and make another one; in a blueprint, give the template of the new type \
              another name.",
    },
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let type_of = |object: &serde_json::Value| object.pointer("/spec/type").cloned().unwrap_or_default();
    let (old, new) = (type_of(request.old_object()), type_of(request.object()));
    if old == new {
        return Vec::new();
    }
    let message = format!("the type was {} and cannot become {}", wire::brief(&old), wire::brief(&new));
    let finding =
        RULE.finding(FieldPath::of(["spec", "type"]), message).found(wire::brief(&new)).allowed(wire::brief(&old));
    vec![finding.help("leave the type as it is; for another deployer make another DeployItem")]
}
