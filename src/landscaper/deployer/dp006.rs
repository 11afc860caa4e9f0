//! DP006: a phase that Landscaper does not know.

use super::finding::{Told, phase_field, unless_kept};
use super::phase::PHASES;
use super::promises::PHASE_IS_KNOWN;
use crate::admission::{Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::near;
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::status(&DEPLOY_ITEMS, Outage::Admit)];

/// The row of DP006.
pub(super) static RULE: Rule = Rule {
    id: "DP006",
    name: "unknown-phase",
    level: Level::Warn,
    summary: "a phase that Landscaper does not know",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "A phase that is not `Succeeded`, `Failed` or `DeleteFailed` counts as one of work, whatever it says: \
              `succeeded` and `Done` never end. Deployers may have phases of their own, as the mock deployer has, \
              so this is a warning; where no such deployer runs, deny it.",
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
  phase: succeeded
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
        mend: "Spell the phase as Landscaper does: `Init`, `Progressing`, `Succeeded`, `Failed`, and `InitDelete`, \
              `Deleting`, `DeleteFailed` for deletions. What the deployer wants to say beyond that belongs into \
              `providerStatus` or `conditions`.",
    },
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    unless_kept(&RULE, &PHASE_IS_KNOWN, (request, view), |change| {
        let phase = change.new.phase_text;
        let known = PHASES.iter().map(|(_, name, _)| *name).filter(|name| !name.is_empty());
        let near = near::nearest(phase, known).map(|name| format!("; did you mean {name}?")).unwrap_or_default();
        Told {
            field: phase_field(request),
            what: format!("{phase:?} is no phase that Landscaper knows{near}"),
            correct: format!(
                "{near}write Init, Progressing, Succeeded or Failed; InitDelete, Deleting or DeleteFailed"
            ),
        }
    })
}
