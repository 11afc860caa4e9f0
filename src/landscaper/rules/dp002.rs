//! DP002: reports a `jobIDFinished` that is not the current job.

use crate::admission::{Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::deployer::finding::{Violation, field, unless_kept};
use crate::landscaper::deployer::promises::FINISHED_IS_THE_JOB;
use crate::landscaper::deployer::status;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::status(&DEPLOY_ITEMS, Outage::Admit).reading(status::READ)];

/// The rule definition of DP002.
pub(super) static RULE: Rule = Rule {
    id: "DP002",
    name: "finished-another-job",
    level: Level::Deny,
    summary: "a jobIDFinished that changes to a value other than jobID",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "`jobIDFinished` tells Landscaper which job is done. A deployer that reads a stale copy may write the id \
              of an older job, so the new job stays open. If a deployer writes another id or removes the id, \
              Landscaper waits until the pickup timeout.",
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
  phase: Progressing
  jobID: c
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
  phase: Succeeded
  jobID: c
  jobIDFinished: b
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
  phase: Progressing
  jobID: c
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
  phase: Succeeded
  jobID: c
  jobIDFinished: c
  lastReconcileTime: \"2026-01-01T12:00:00Z\"
",
        },
        mend: "Copy `status.jobID` from the DeployItem that you read for this update. If it is not the job that the \
              deployer has processed, do not finish it.",
    },
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    unless_kept(&RULE, &FINISHED_IS_THE_JOB, (request, view), |change| Violation {
        field: field("jobIDFinished"),
        what: format!("jobIDFinished is {:?}, but the current job is {:?}", change.new.finished, change.new.job),
        correct: format!("write {{jobIDFinished: {:?}}}, which is the jobID, or leave it unchanged", change.new.job),
    })
}
