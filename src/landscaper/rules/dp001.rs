//! DP001: reports a finished job whose phase is not final.

use crate::admission::{Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::deployer::finding::{Violation, phase_field, unless_kept};
use crate::landscaper::deployer::promises::FINISHED_IS_FINAL;
use crate::landscaper::deployer::status;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::status(&DEPLOY_ITEMS, Outage::Admit).reading(status::READ)];

/// The rule definition of DP001.
pub(super) static RULE: Rule = Rule {
    id: "DP001",
    name: "finished-but-not-final",
    level: Level::Deny,
    summary: "a status with a finished job but a phase that is not final",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "Landscaper reads the result of a job as soon as `jobIDFinished` equals `jobID`. A phase that is not \
              final is not a result: the Execution keeps waiting, although the deployer has finished. Therefore the \
              deployer must write both fields in one update.",
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
  jobID: b
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
  phase: Succeeded
  jobID: b
  jobIDFinished: b
  lastReconcileTime: \"2026-01-01T12:00:00Z\"
",
        },
        mend: "Write the final phase and `jobIDFinished` in one update of the status. Never write the phase later.",
    },
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    unless_kept(&RULE, &FINISHED_IS_FINAL, (request, view), |change| {
        let job = change.new.job;
        Violation {
            field: phase_field(request),
            what: format!("job {job:?} is finished, but its phase is {:?}", change.new.phase_text),
            correct: format!(
                "write both at once: {{phase: Succeeded, jobIDFinished: {job:?}}}, or Failed with lastError"
            ),
        }
    })
}
