//! DP003: reports a changed result of a finished job.

use crate::admission::{Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::deployer::finding::{Violation, phase_field, unless_kept};
use crate::landscaper::deployer::promises::RESULT_STAYS;
use crate::landscaper::deployer::status::{self, Change};
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::status(&DEPLOY_ITEMS, Outage::Admit).reading(status::READ)];

/// The rule definition of DP003.
pub(super) static RULE: Rule = Rule {
    id: "DP003",
    name: "result-changed",
    level: Level::Deny,
    summary: "a phase that changes after the job has finished",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "As soon as `jobIDFinished` equals `jobID`, Landscaper reads the phase and acts on it: it continues with \
              the next DeployItem, or fails the Execution. Landscaper may never read a phase that changes later.",
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
  phase: Succeeded
  jobID: b
  jobIDFinished: b
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
  phase: Failed
  jobID: b
  jobIDFinished: b
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
  observedGeneration: 2
",
        },
        mend: "Finish a job only when its result is certain. Write later information to `conditions` or \
              `providerStatus`, or as the result of the next job.",
    },
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    unless_kept(&RULE, &RESULT_STAYS, (request, view), |change| {
        let Change { old, new } = change;
        Violation {
            field: phase_field(request),
            what: format!(
                "job {:?} has finished as {:?}, and its phase cannot become {:?}",
                new.job, old.phase_text, new.phase_text
            ),
            correct: format!("leave the phase {:?} until Landscaper writes another jobID", old.phase_text),
        }
    })
}
