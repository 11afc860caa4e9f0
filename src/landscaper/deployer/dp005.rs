//! DP005: a phase of uninstalling, on a DeployItem that is not being deleted.

use super::finding::{Told, phase_field, unless_kept};
use super::promises::UNINSTALLS_WHAT_IS_DELETED;
use crate::admission::{Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::status(&DEPLOY_ITEMS, Outage::Admit)];

/// The row of DP005.
pub(super) static RULE: Rule = Rule {
    id: "DP005",
    name: "uninstalls-what-is-not-deleted",
    level: Level::Deny,
    summary: "InitDelete, Deleting or DeleteFailed on a DeployItem that is not being deleted",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "Landscaper deletes a DeployItem, and deployers see that by its deletion timestamp. A deployer that \
              uninstalls without one takes away what nobody asked it to, and Landscaper counts `DeleteFailed` as \
              the end of a deletion that never began.",
        wrong: Example {
            stored: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DeployItem
metadata:
  name: test-item
  namespace: cu-example
spec:
  type: landscaper.gardener.cloud/kubernetes-manifest
status:
  phase: Init
  jobID: b
  jobIDFinished: a
  lastReconcileTime: \"2026-01-01T12:00:00Z\"
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
status:
  phase: Deleting
  jobID: b
  jobIDFinished: a
  lastReconcileTime: \"2026-01-01T12:00:00Z\"
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
status:
  phase: Init
  jobID: b
  jobIDFinished: a
  lastReconcileTime: \"2026-01-01T12:00:00Z\"
",
            operation: Operation::Update,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DeployItem
metadata:
  name: test-item
  namespace: cu-example
  deletionTimestamp: \"2026-01-01T11:59:00Z\"
spec:
  type: landscaper.gardener.cloud/kubernetes-manifest
status:
  phase: Deleting
  jobID: b
  jobIDFinished: a
  lastReconcileTime: \"2026-01-01T12:00:00Z\"
",
        },
        mend: "Look at `metadata.deletionTimestamp` first: without it the phases are `Init`, `Progressing`, \
              `Succeeded` and `Failed`.",
    },
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    unless_kept(&RULE, &UNINSTALLS_WHAT_IS_DELETED, (request, view), |change| {
        let phase = change.new.phase_text;
        Told {
            field: phase_field(request),
            what: format!("the phase is {phase:?}, and the DeployItem has no deletion timestamp"),
            correct: "write Init, Progressing, Succeeded or Failed; uninstall only what is being deleted".to_owned(),
        }
    })
}
