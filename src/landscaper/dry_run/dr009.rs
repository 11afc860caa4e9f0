//! DR009: a switch between dry run and real run at the wrong time.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;

use super::DRY_RUN_ANNOTATION;
use super::mark::{self, Mark, annotation};
use super::run;
use crate::admission::{Finding, Level, Operation, Path, Request};
use crate::catalog::{Confirmation, Index, Kind, Reference, Stored, View};
use crate::landscaper::kinds::{self, BY_OWNER, DEPLOY_ITEMS, EXECUTIONS, INSTALLATIONS, owner_key};
use crate::rule::{Example, Match, Outage, Page, Rule};

const UPDATE: &[Operation] = &[Operation::Update];

/// Where an Installation says whether it is being processed.
const JOB: &[Path] = &[&["status", "jobID"], &["status", "jobIDFinished"]];

static SCOPE: [Match; 1] = [kinds::matches(&INSTALLATIONS, UPDATE, Outage::Admit).reading(JOB)];

/// The row of DR009.
pub(super) static RULE: Rule = Rule {
    id: "DR009",
    name: "switched-while-deployed",
    level: Level::Deny,
    summary: "a root that is switched to dry run while it is deployed, or to a real run while its dry run is under way",
    scope: &SCOPE,
    looks_up: &[&DEPLOY_ITEMS, &EXECUTIONS, &INSTALLATIONS],
    confirm: Some(confirm),
    check,
    page: Page {
        why: "In a dry run nothing is changed on the target, and nothing is taken away either: an Installation that was deployed, \
              is switched to dry run and then deleted leaves all that it deployed behind. And while a dry run is under way, \
              a switch to a real run would deploy what of it comes later. Deployed is what has a DeployItem that was \
              processed and is not in dry run.",
        wrong: Example {
            stored: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Context
metadata:
  name: default
  namespace: cu-example
---
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
metadata:
  name: test-installation
  namespace: cu-example
---
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Execution
metadata:
  name: test-installation
  namespace: cu-example
  ownerReferences:
    - {apiVersion: landscaper.gardener.cloud/v1alpha1, kind: Installation, name: test-installation, controller: true}
---
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DeployItem
metadata:
  name: test-item
  namespace: cu-example
  ownerReferences:
    - {apiVersion: landscaper.gardener.cloud/v1alpha1, kind: Execution, name: test-installation, controller: true}
status:
  phase: Succeeded
  jobID: job-1
  jobIDFinished: job-1
",
            operation: Operation::Update,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
metadata:
  name: test-installation
  namespace: cu-example
  annotations:
    landscaper.gardener.cloud/dry-run: \"true\"
",
        },
        right: Example {
            stored: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Context
metadata:
  name: default
  namespace: cu-example
---
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
metadata:
  name: test-installation
  namespace: cu-example
",
            operation: Operation::Update,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
metadata:
  name: test-installation
  namespace: cu-example
  annotations:
    landscaper.gardener.cloud/dry-run: \"true\"
",
        },
        mend: "For a dry run of something that is deployed, apply a second Installation under another name. To end a dry run, wait \
               for its job to finish.",
    },
};

/// The most objects below a root that are looked at: a decision is bounded, whatever is stored.
const MAX_EXAMINED: usize = 2_000;
/// How many deployed DeployItems are confirmed.
const CONFIRMED: usize = 5;

/// From and to which kind of run a root is switched.
enum Switch {
    ToDryRun,
    ToRealRun,
}

impl Switch {
    fn of(request: &Request<'_>) -> Option<Self> {
        let is_root = mark::owner(request.object()).is_none();
        let before = Mark::of(request.old_object()).is_dry_run();
        match (before, Mark::of(request.object()).is_dry_run()) {
            (false, true) if is_root => Some(Self::ToDryRun),
            (true, false) if is_root => Some(Self::ToRealRun),
            _ => None,
        }
    }
}

fn confirm(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    if !matches!(Switch::of(request), Some(Switch::ToDryRun)) {
        return Vec::new();
    }
    deployed(request, view).iter().map(|item| Reference::new(&DEPLOY_ITEMS, &request.namespace, item.name())).collect()
}

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let finding = match Switch::of(request) {
        Some(Switch::ToDryRun) => to_dry_run(request, view),
        Some(Switch::ToRealRun) if is_running(request.old_object()) => Some(
            RULE.finding(
                annotation(DRY_RUN_ANNOTATION),
                "its dry run is under way: what of it comes later is deployed",
            )
            .help("wait until status.jobIDFinished is status.jobID"),
        ),
        _ => None,
    };
    finding.into_iter().collect()
}

fn to_dry_run(request: &Request<'_>, view: &View<'_>) -> Option<Finding> {
    let still = |item: &&Arc<Stored>| {
        let reference = Reference::new(&DEPLOY_ITEMS, &request.namespace, item.name());
        match view.confirmation(&reference) {
            Some(Confirmation::Exists(now)) => is_deployed(now.value()),
            Some(Confirmation::Gone) => false,
            _ => true,
        }
    };
    let deployed = deployed(request, view);
    let item = deployed.iter().find(still)?;
    let message =
        format!("DeployItem {:?} is deployed: in dry run, its deletion takes nothing off the target", item.name());
    let finding = RULE.finding(annotation(DRY_RUN_ANNOTATION), message);
    Some(finding.help("apply a second Installation for the dry run, under another name"))
}

/// Whether a job of an object has not ended.
pub(super) fn is_running(object: &Value) -> bool {
    let status = |key: &str| object.get("status").and_then(|status| status.get(key)?.as_str()).unwrap_or_default();
    status("jobID") != status("jobIDFinished")
}

/// An item that was processed, and not in a dry run. One whose dry run is over has lost its mark with its root, but not
/// the name of the deployer that touches no target.
fn is_deployed(item: &Value) -> bool {
    let text = |pointer| item.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let was_dry_run = text("/status/deployer/name") == run::NAME;
    !text("/status/phase").is_empty() && !was_dry_run && !Mark::of(item).is_dry_run()
}

/// Some of the DeployItems below a root that were processed for real, as far as the catalog knows.
fn deployed(request: &Request<'_>, view: &View<'_>) -> Vec<Arc<Stored>> {
    let mut found = Vec::new();
    let mut open = VecDeque::from([(&INSTALLATIONS, request.display_name())]);
    let mut left = MAX_EXAMINED;
    while let Some((kind, name)) = open.pop_front() {
        let mut below = |of: &'static Kind| {
            let index: &'static Index = &BY_OWNER;
            let below = view.indexed(of, index, &request.namespace, &owner_key(kind.kind, &name), left);
            left = left.saturating_sub(below.len());
            below
        };
        let items = below(&DEPLOY_ITEMS);
        found.extend(items.into_iter().filter(|item| is_deployed(item.value())));
        if found.len() >= CONFIRMED {
            break;
        }
        for next in [&EXECUTIONS, &INSTALLATIONS] {
            open.extend(below(next).iter().map(|object| (next, object.name().to_owned())));
        }
    }
    found.truncate(CONFIRMED);
    found
}
