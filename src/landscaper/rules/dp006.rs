//! DP006: reports phases that Landscaper does not know.

use crate::admission::{Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::deployer::finding::{Violation, phase_field, unless_kept};
use crate::landscaper::deployer::phase::PHASES;
use crate::landscaper::deployer::promises::PHASE_IS_KNOWN;
use crate::landscaper::deployer::status;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{Example, Match, Outage, Page, Rule};
use crate::suggestion;

static SCOPE: [Match; 1] = [kinds::status(&DEPLOY_ITEMS, Outage::Admit).reading(status::READ)];

/// The rule definition of DP006.
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
        why: "Landscaper treats every phase other than `Succeeded`, `Failed` and `DeleteFailed` as work in progress: \
              with `succeeded` or `Done`, the job never ends. Deployers may define their own phases, as the mock \
              deployer does, so the rule warns by default. If no such deployer runs, set the level to `deny`.",
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
              `Deleting`, `DeleteFailed` for deletions. Write further information to \
              `providerStatus` or `conditions`.",
    },
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    unless_kept(&RULE, &PHASE_IS_KNOWN, (request, view), |change| {
        let phase = change.new.phase_text;
        let known = PHASES.iter().map(|(_, name, _)| *name).filter(|name| !name.is_empty());
        let near =
            suggestion::most_similar(phase, known).map(|name| format!("; did you mean {name}?")).unwrap_or_default();
        Violation {
            field: phase_field(request),
            what: format!("{phase:?} is not a phase that Landscaper knows{near}"),
            correct: format!(
                "{near}write Init, Progressing, Succeeded or Failed; InitDelete, Deleting or DeleteFailed"
            ),
        }
    })
}
