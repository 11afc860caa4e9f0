//! DP007: reports a changed type of a DeployItem.

use super::UPDATE;
use crate::admission::{FieldPath, Finding, Level, Operation, Request, json as wire};
use crate::catalog::View;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::landscaper::validation;
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&DEPLOY_ITEMS, UPDATE, Outage::Admit).reading(&[&["spec", "type"]])];

/// The rule definition of DP007.
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
              uninstalls the objects that it has deployed, and the new deployer does not know them. Landscaper's own \
              webhook denies this too.",
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
        mend: "Delete the DeployItem and create another one. In a blueprint, give the template of the new type \
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
    let mut finding = finding.help("leave the type unchanged; for another deployer, create another DeployItem");
    if validation::is_bypassed(request) {
        finding.level = Level::Audit;
    }
    vec![finding]
}
