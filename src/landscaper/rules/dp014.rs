//! DP014: reports a job that is replaced before it has finished.

use crate::admission::{Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::deployer::finding::{Violation, field, unless_kept};
use crate::landscaper::deployer::promises::JOBS_COME_ONE_BY_ONE;
use crate::landscaper::deployer::status;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::status(&DEPLOY_ITEMS, Outage::Admit).reading(status::READ)];

/// The rule definition of DP014.
pub(super) static RULE: Rule = Rule {
    id: "DP014",
    name: "job-replaced",
    level: Level::Warn,
    summary: "a jobID that changes before the job has finished",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "Landscaper starts a job only when the previous job has finished. If a job is replaced while a deployer \
              processes it, the deployer finishes the wrong job or none. Two known writes replace a job correctly. \
              An interrupt also finishes the new job in the same update, so the rule admits it. A test-reconcile \
              looks like any other write, so the rule only warns.",
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
        mend: "Wait until `jobIDFinished` equals `jobID`. To cancel a job, interrupt the Installation.",
    },
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    unless_kept(&RULE, &JOBS_COME_ONE_BY_ONE, (request, view), |change| Violation {
        field: field("jobID"),
        what: format!("job {:?} is replaced by {:?} before it has finished", change.old.job, change.new.job),
        correct: format!("keep the jobID {:?} until jobIDFinished is {0:?} too", change.old.job),
    })
}
