//! DR006: reports dry runs with exports but without a DryRunConfiguration.

use super::WRITES;
use crate::admission::{Finding, Level, Operation, Request};
use crate::catalog::{Reference, View};
use crate::landscaper::annotations::CONFIGURATION_ANNOTATION;
use crate::landscaper::dry_run::reading::{self, Configuration, Reading};
use crate::landscaper::dry_run_annotations::{DryRunAnnotations, annotation};
use crate::landscaper::kinds::{self, DEPLOY_ITEMS, DRY_RUN_CONFIGURATIONS, EXECUTIONS, INSTALLATIONS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 3] = [
    kinds::matches(&DEPLOY_ITEMS, WRITES, Outage::Admit),
    kinds::matches(&EXECUTIONS, WRITES, Outage::Admit),
    kinds::matches(&INSTALLATIONS, WRITES, Outage::Admit).reading(&[]),
];

/// The rule definition of DR006.
pub(super) static RULE: Rule = Rule {
    id: "DR006",
    name: "no-configuration",
    level: Level::Deny,
    summary: "a dry run with exports that names no DryRunConfiguration, or one that does not exist",
    scope: &SCOPE,
    looks_up: &[&DRY_RUN_CONFIGURATIONS],
    confirm: Some(confirm),
    check,
    page: Page {
        why: "If DeployItems export values, a dry run reads them from a DryRunConfiguration in the same namespace, which the \
              root Installation names. Without it, the exports have no value. The rule denies a DeployItem or an Execution \
              with exports. If an Installation names a missing DryRunConfiguration, the rule only warns, because you may \
              apply it next.",
        wrong: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DeployItem
metadata:
  name: test-item
  namespace: cu-example
  annotations:
    landscaper.gardener.cloud/dry-run: \"true\"
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
        mend: "Create the DryRunConfiguration in the namespace of the Installation, and name it in the root's annotation \
               `landscaper.gardener.cloud/dry-run-configuration`.",
    },
};

fn confirm(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    if !kinds::is(&INSTALLATIONS, request) {
        return reading::confirm(request, view);
    }
    let name = named(request);
    name.and_then(|name| view.unless_found(&DRY_RUN_CONFIGURATIONS, &request.namespace, name)).into_iter().collect()
}

/// Returns the name of the DryRunConfiguration of an Installation in dry run.
fn named<'r>(request: &'r Request<'_>) -> Option<&'r str> {
    let annotations = DryRunAnnotations::of(request.object());
    annotations.configuration.filter(|name| annotations.is_dry_run() && !name.is_empty())
}

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    if kinds::is(&INSTALLATIONS, request) {
        let missing = named(request).filter(|name| view.is_missing(&DRY_RUN_CONFIGURATIONS, &request.namespace, name));
        return missing.map(|name| finding(&does_not_exist(request, name), Level::Warn)).into_iter().collect();
    }
    let reading = Reading::of(request.object(), &request.namespace, view);
    let message = match &reading.configuration {
        Configuration::NotNamed => {
            "is missing: this object exports values, which a dry run reads from a DryRunConfiguration".to_owned()
        }
        Configuration::Missing(name) => does_not_exist(request, name),
        _ => return Vec::new(),
    };
    vec![finding(&message, reading::level(request, view, RULE.level))]
}

fn does_not_exist(request: &Request<'_>, name: &str) -> String {
    format!("DryRunConfiguration {name:?} does not exist in namespace {}", request.namespace)
}

fn finding(message: &str, level: Level) -> Finding {
    let mut finding = RULE.finding(annotation(CONFIGURATION_ANNOTATION), message);
    finding.level = level;
    finding.help("create it, and name it in this annotation of the root Installation")
}
