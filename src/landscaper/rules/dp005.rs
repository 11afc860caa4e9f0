//! DP005: reports a deletion phase on a DeployItem that is not being deleted.

use crate::admission::{Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::deployer::finding::{Violation, phase_field, unless_kept};
use crate::landscaper::deployer::promises::UNINSTALLS_WHAT_IS_DELETED;
use crate::landscaper::deployer::status;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::status(&DEPLOY_ITEMS, Outage::Admit).reading(status::READ)];

/// The rule definition of DP005.
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
        why: "The deletion timestamp shows a deployer that Landscaper deletes the DeployItem. A deployer that \
              uninstalls without one removes objects that nobody asked to remove. Landscaper treats `DeleteFailed` as \
              the end of a deletion, although no deletion has started.",
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
        mend: "Check `metadata.deletionTimestamp` first: without it, the phases are `Init`, `Progressing`, \
              `Succeeded` and `Failed`.",
    },
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    unless_kept(&RULE, &UNINSTALLS_WHAT_IS_DELETED, (request, view), |change| {
        let phase = change.new.phase_text;
        Violation {
            field: phase_field(request),
            what: format!("the phase is {phase:?}, but the DeployItem has no deletion timestamp"),
            correct: "write Init, Progressing, Succeeded or Failed; uninstall only if the DeployItem is being deleted"
                .to_owned(),
        }
    })
}
