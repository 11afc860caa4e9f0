//! DR005: reports exports of a dry run without a fragment.

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::dry_run::export::Failure;
use crate::landscaper::dry_run::fragment::Identity;
use crate::landscaper::dry_run::reading::{self, Configuration, Reading};
use crate::landscaper::kinds::{self, DEPLOY_ITEMS, DRY_RUN_CONFIGURATIONS, EXECUTIONS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 3] = [
    kinds::matches(&DEPLOY_ITEMS, WRITES, Outage::Admit),
    kinds::matches(&EXECUTIONS, WRITES, Outage::Admit),
    kinds::matches(&DRY_RUN_CONFIGURATIONS, WRITES, Outage::Refuse),
];

/// The rule definition of DR005.
pub(super) static RULE: Rule = Rule {
    id: "DR005",
    name: "fragment-missing",
    level: Level::Deny,
    summary: "an export of a dry run whose object has no fragment",
    scope: &SCOPE,
    looks_up: &[&DEPLOY_ITEMS, &DRY_RUN_CONFIGURATIONS],
    confirm: Some(reading::confirm),
    check,
    page: Page {
        why: "In a dry run, an export whose object has no fragment has no value, and the run fails. The rule denies the \
              DeployItem or the Execution, and suggests a fragment to add. For a DryRunConfiguration it only warns, \
              because the fragment may be added later. Objects are compared literally by apiVersion, kind, namespace \
              and name.",
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
        mend: "Add the fragment. `portcullis explain dry-run` prints all missing fragments, ready to paste.",
    },
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    if kinds::is(&DRY_RUN_CONFIGURATIONS, request) {
        return of_configuration(request, view);
    }
    let reading = Reading::of(request.object(), &request.namespace, view);
    let Configuration::Found(configuration) = &reading.configuration else { return Vec::new() };
    let finding = |(at, number, failure): (usize, usize, Failure)| {
        let Failure::Missing(identity) = failure else { return None };
        let (item, export) = (reading.items.get(at)?, reading.items.get(at)?.exports.get(number)?);
        let field = export.field.key("fromResource");
        let text = format!("DryRunConfiguration {:?} has no fragment of {identity}", configuration.name());
        let mut finding = RULE.finding(item.field(&field), item.message(&field, &text));
        finding.level = reading::level(request, view, finding.level);
        Some(finding.help(help(&identity)))
    };
    reading.failures(configuration.value()).into_iter().filter_map(finding).collect()
}

fn help(identity: &Identity) -> String {
    format!(
        "add this fragment to spec.exports of the DryRunConfiguration, with the exported field: {}",
        identity.to_fragment()
    )
}

fn of_configuration(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for stored in reading::users(&request.namespace, &request.display_name(), view) {
        let reading = Reading::of(stored.value(), &request.namespace, view);
        for (_, _, failure) in reading.failures(request.object()) {
            let Failure::Missing(identity) = failure else { continue };
            let message =
                format!("there is no fragment of {identity}, which DeployItem {:?} exports from", stored.name());
            let mut finding = RULE.finding(FieldPath::of(["spec", "exports"]), message);
            finding.level = Level::Warn;
            findings.push(finding.help(help(&identity)));
        }
    }
    findings
}
