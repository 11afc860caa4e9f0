//! DP002: a job is said to be finished that nobody asked for.

use super::finding::{Told, field, unless_kept};
use super::promises::FINISHED_IS_THE_JOB;
use crate::admission::{Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::status(&DEPLOY_ITEMS, Outage::Admit)];

/// The row of DP002.
pub(super) static RULE: Rule = Rule {
    id: "DP002",
    name: "finished-another-job",
    level: Level::Deny,
    summary: "a jobIDFinished that becomes anything but jobID",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "`jobIDFinished` tells Landscaper which job is done. A deployer that writes the id of an older job, \
              as it does when it works on a stale copy, leaves the new one open for ever; one that writes an id of \
              its own, or takes the id away, makes Landscaper wait until the pickup timeout.",
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
        mend: "Copy `status.jobID` of the DeployItem as it is read for this very update; where it is another job \
              than the one that was worked on, do not finish it.",
    },
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    unless_kept(&RULE, &FINISHED_IS_THE_JOB, (request, view), |change| Told {
        field: field("jobIDFinished"),
        what: format!("job {:?} is said to be finished, and the job is {:?}", change.new.finished, change.new.job),
        correct: format!("write {{jobIDFinished: {:?}}}, the jobID, or leave it as it is", change.new.job),
    })
}
