//! DP014: a job is replaced before it is finished.

use super::finding::{Told, field, unless_kept};
use super::promises::JOBS_COME_ONE_BY_ONE;
use crate::admission::{Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::status(&DEPLOY_ITEMS, Outage::Admit)];

/// The row of DP014.
pub(super) static RULE: Rule = Rule {
    id: "DP014",
    name: "job-replaced",
    level: Level::Warn,
    summary: "a jobID that changes before the job is finished",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "Landscaper starts a job when the one before is finished. A job that is replaced under a deployer \
              that works on it is either finished under the wrong id or never. Two writes that do it are known and \
              no mistake: an interrupt, which ends the new job in the same update and is let through, and a \
              test-reconcile, which looks like any other by the time its status is written; so this is a warning.",
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
  phase: Progressing
  jobID: c
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
  phase: Succeeded
  jobID: b
  jobIDFinished: b
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
        mend: "Wait until `jobIDFinished` is `jobID`; to give a job up, interrupt the Installation.",
    },
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    unless_kept(&RULE, &JOBS_COME_ONE_BY_ONE, (request, view), |change| Told {
        field: field("jobID"),
        what: format!("job {:?} is replaced before it is finished, by {:?}", change.old.job, change.new.job),
        correct: format!("leave the jobID {:?} until jobIDFinished is {0:?} too", change.old.job),
    })
}
