//! DP004: work begins without a job, or without saying when.

use super::finding::{Told, field, phase_field, unless_kept};
use super::promises::PICKED_UP;
use super::status::{Change, Job, Status};
use crate::admission::{Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::status(&DEPLOY_ITEMS, Outage::Admit)];

/// The row of DP004.
pub(super) static RULE: Rule = Rule {
    id: "DP004",
    name: "work-without-pickup",
    level: Level::Deny,
    summary: "a phase that begins work on a finished job, or without lastReconcileTime",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "A deployer may work on a DeployItem only while `jobID` and `jobIDFinished` differ: that is how \
              Landscaper says that there is something to do. And it must write `lastReconcileTime` as it begins, \
              from which Landscaper knows that the job was picked up; without it the DeployItem is failed after \
              the pickup timeout, with the deployer still at work. A clock that goes behind is told from one that \
              was forgotten: an older time by another deployer is only warned about.",
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
  jobIDFinished: a
  lastReconcileTime: \"2026-01-01T11:00:00Z\"
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
  jobIDFinished: a
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
  jobIDFinished: a
  lastReconcileTime: \"2026-01-01T11:00:00Z\"
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
  jobIDFinished: a
  lastReconcileTime: \"2026-01-01T12:00:00Z\"
",
        },
        mend: "Begin with an update that sets the phase to `Init` (`InitDelete` where the DeployItem is being \
              deleted) and `lastReconcileTime` to now, and only where `jobID` is not `jobIDFinished`.",
    },
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let mut findings = unless_kept(&RULE, &PICKED_UP, (request, view), |change| tell(change, request));
    let change = Change::of(request.old_object(), request.object());
    for finding in &mut findings {
        // Two machines seldom agree about the time.
        if change.new.job() == Job::Open && change.new.reconciled.is_some() && is_by_another(&change) {
            finding.level = finding.level.min(Level::Warn);
        }
    }
    findings
}

fn is_by_another(Change { old, new }: &Change<'_>) -> bool {
    old.deployer != new.deployer
}

fn tell(change: &Change<'_>, request: &Request<'_>) -> Told {
    let Change { old, new } = change;
    let correct = format!("write {{phase: {}, lastReconcileTime: now}} once jobID is not jobIDFinished", begin(change));
    if new.job() != Job::Open {
        let what = format!("the phase {:?} is one of work, and there is no open job", new.phase_text);
        return Told { field: phase_field(request), what, correct };
    }
    let time = |status: &Status<'_>| status.reconciled.map(|time| time.to_string()).unwrap_or_default();
    let what = match new.reconciled {
        None => format!("the phase {:?} begins work, and lastReconcileTime is not set", new.phase_text),
        Some(_) => {
            format!("the phase {:?} begins work at {}, before the last time, {}", new.phase_text, time(new), time(old))
        }
    };
    Told { field: field("lastReconcileTime"), what, correct }
}

fn begin(change: &Change<'_>) -> &'static str {
    if change.new.being_deleted { "InitDelete" } else { "Init" }
}
