//! DR010: reports deletions of a DryRunConfiguration that a running dry run uses.

use serde_json::Value;

use super::DELETION;
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::{Confirmation, NAMESPACES, Reference, View};
use crate::landscaper::deletion::is_terminating;
use crate::landscaper::dry_run::is_running;
use crate::landscaper::dry_run::reading::MAX_ITEMS;
use crate::landscaper::dry_run_annotations::DryRunAnnotations;
use crate::landscaper::kinds::{self, BY_DRY_RUN_CONFIGURATION, DEPLOY_ITEMS, DRY_RUN_CONFIGURATIONS, INSTALLATIONS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&DRY_RUN_CONFIGURATIONS, DELETION, Outage::Admit)];

/// The rule definition of DR010.
pub(super) static RULE: Rule = Rule {
    id: "DR010",
    name: "configuration-deleted-while-used",
    level: Level::Deny,
    summary: "deleting a DryRunConfiguration that a dry run under way uses",
    scope: &SCOPE,
    looks_up: &[&DEPLOY_ITEMS, &INSTALLATIONS, &NAMESPACES],
    confirm: Some(confirm),
    check,
    page: Page {
        why: "A dry run fails if its DryRunConfiguration is deleted, because its remaining exports have no values. Before the \
              rule denies a deletion, it confirms the users of the DryRunConfiguration by live reads. The rule never \
              denies deletions in a namespace that is being deleted, or by the namespace controller or the garbage \
              collector.",
        wrong: Example {
            stored: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DeployItem
metadata:
  name: test-item
  namespace: cu-example
  annotations:
    landscaper.gardener.cloud/dry-run: \"true\"
    landscaper.gardener.cloud/dry-run-configuration: test-dry-run
  ownerReferences:
    - {apiVersion: landscaper.gardener.cloud/v1alpha1, kind: Execution, name: test-installation, controller: true}
status:
  phase: Progressing
  jobID: job-2
  jobIDFinished: job-1
",
            operation: Operation::Delete,
            object: "\
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
        },
        right: Example {
            stored: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DeployItem
metadata:
  name: test-item
  namespace: cu-example
  annotations:
    landscaper.gardener.cloud/dry-run: \"true\"
    landscaper.gardener.cloud/dry-run-configuration: test-dry-run
  ownerReferences:
    - {apiVersion: landscaper.gardener.cloud/v1alpha1, kind: Execution, name: test-installation, controller: true}
status:
  phase: Succeeded
  jobID: job-1
  jobIDFinished: job-1
",
            operation: Operation::Delete,
            object: "\
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
        },
        mend: "Wait until the dry runs have ended, or interrupt them (`landscaper.gardener.cloud/operation: interrupt`).",
    },
};

/// The maximum number of users that live reads confirm.
const CONFIRMED: usize = 5;

fn confirm(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    if request.user.is_collector() {
        return Vec::new();
    }
    let mut wanted = users(request, view);
    if !wanted.is_empty() {
        wanted.push(Reference::new(&NAMESPACES, "", &request.namespace));
    }
    wanted
}

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    if request.user.is_collector() || is_terminating(&request.namespace, view) {
        return Vec::new();
    }
    let name = request.display_name();
    let still = |reference: &Reference| match view.confirmation(reference) {
        Some(Confirmation::Exists(now)) => uses(now.value(), &name),
        Some(Confirmation::Gone) => false,
        _ => true,
    };
    let Some(user) = users(request, view).into_iter().find(still) else { return Vec::new() };
    let message = format!(
        "DryRunConfiguration {name:?} is used by {} {:?}, and its job has not ended",
        user.kind.kind, user.name
    );
    vec![RULE.finding(FieldPath::root(), message).help("wait until the dry run has ended, or interrupt it")]
}

fn uses(object: &Value, name: &str) -> bool {
    let annotations = DryRunAnnotations::of(object);
    annotations.is_dry_run() && annotations.configuration == Some(name) && is_running(object)
}

/// Returns up to [`CONFIRMED`] objects with an open job that use the DryRunConfiguration, from the catalog.
fn users(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    let name = request.display_name();
    let of = |kind| {
        let found = view.indexed(kind, &BY_DRY_RUN_CONFIGURATION, &request.namespace, &name, MAX_ITEMS);
        let running = found.into_iter().filter(|stored| is_running(stored.value()));
        running.map(move |stored| Reference::new(kind, stored.namespace(), stored.name()))
    };
    of(&DEPLOY_ITEMS).chain(of(&INSTALLATIONS)).take(CONFIRMED).collect()
}
