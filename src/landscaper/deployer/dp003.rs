//! DP003: the result of a finished job changes.

use super::finding::{Told, phase_field, unless_kept};
use super::promises::RESULT_STAYS;
use super::status::Change;
use crate::admission::{Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::status(&DEPLOY_ITEMS, Outage::Admit)];

/// The row of DP003.
pub(super) static RULE: Rule = Rule {
    id: "DP003",
    name: "result-changed",
    level: Level::Deny,
    summary: "a phase that changes after the job was finished",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "Once `jobIDFinished` is `jobID`, Landscaper has read the phase and acted on it: it has gone on to \
              the next DeployItem, or failed the Execution. A phase that changes afterwards is seen by nobody, or \
              by half of them.",
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
        mend: "Finish a job when its result is certain. What is learnt later belongs into `conditions` or \
              `providerStatus`, or into the next job.",
    },
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    unless_kept(&RULE, &RESULT_STAYS, (request, view), |change| {
        let Change { old, new } = change;
        Told {
            field: phase_field(request),
            what: format!(
                "job {:?} has ended as {:?}, and cannot become {:?}",
                new.job, old.phase_text, new.phase_text
            ),
            correct: format!("leave the phase {:?} until Landscaper writes another jobID", old.phase_text),
        }
    })
}
