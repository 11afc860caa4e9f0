//! DR005: an export without a fragment.

use super::WRITES;
use super::export::Failure;
use super::fragment::Identity;
use super::reading::{self, Configuration, Reading};
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS, DRY_RUN_CONFIGURATIONS, EXECUTIONS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 3] = [
    kinds::matches(&DEPLOY_ITEMS, WRITES, Outage::Admit),
    kinds::matches(&EXECUTIONS, WRITES, Outage::Admit),
    kinds::matches(&DRY_RUN_CONFIGURATIONS, WRITES, Outage::Refuse),
];

/// The row of DR005.
pub(super) static RULE: Rule = Rule {
    id: "DR005",
    name: "fragment-missing",
    level: Level::Deny,
    summary: "an export of a dry run for whose object there is no fragment",
    scope: &SCOPE,
    looks_up: &[&DEPLOY_ITEMS, &DRY_RUN_CONFIGURATIONS],
    confirm: Some(reading::confirm),
    check,
    page: Page {
        why: "In a dry run an export whose object has no fragment has no value, and the run cannot succeed. When the DeployItem or \
              the Execution comes it is refused, with a fragment to begin with; when the DryRunConfiguration comes it is \
              only warned, because more may follow. Objects are compared by apiVersion, kind, namespace and name, \
              literally.",
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
      metadata: {name: other-secret, namespace: example}
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
        - key: test-token
          jsonPath: .data.token
          fromResource: {apiVersion: v1, kind: Secret, name: test-secret, namespace: example}
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
        - key: test-token
          jsonPath: .data.token
          fromResource: {apiVersion: v1, kind: Secret, name: test-secret, namespace: example}
",
        },
        mend: "Add the fragment. `portcullis explain dry-run` prints all that are missing, ready to be pasted.",
    },
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    if kinds::is(&DRY_RUN_CONFIGURATIONS, request) {
        return of_configuration(request, view);
    }
    let reading = Reading::of(request.object(), &request.namespace, view);
    let Configuration::Found(configuration) = &reading.configuration else { return Vec::new() };
    let told = |(at, number, failure): (usize, usize, Failure)| {
        let Failure::Missing(identity) = failure else { return None };
        let (item, export) = (reading.items.get(at)?, reading.items.get(at)?.exports.get(number)?);
        let field = export.field.key("fromResource");
        let text = format!("DryRunConfiguration {:?} has no fragment of {identity}", configuration.name());
        let mut finding = RULE.finding(item.field(&field), item.message(&field, &text));
        finding.level = reading::level(request, view, finding.level);
        Some(finding.help(help(&identity)))
    };
    reading.failures(configuration.value()).into_iter().filter_map(told).collect()
}

fn help(identity: &Identity) -> String {
    format!("add to its spec.exports, with the field that is exported: {}", identity.to_fragment())
}

fn of_configuration(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for stored in reading::users(&request.namespace, &request.display_name(), view) {
        let reading = Reading::of(stored.value(), &request.namespace, view);
        for (_, _, failure) in reading.failures(request.object()) {
            let Failure::Missing(identity) = failure else { continue };
            let message =
                format!("there is no fragment of {identity}, from which DeployItem {:?} exports", stored.name());
            let mut finding = RULE.finding(FieldPath::of(["spec", "exports"]), message);
            finding.level = Level::Warn;
            findings.push(finding.help(help(&identity)));
        }
    }
    findings
}
