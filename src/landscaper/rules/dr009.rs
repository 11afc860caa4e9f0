//! DR009: reports a root Installation that is switched between dry run and real run during a run or after a deployment.

use std::collections::VecDeque;

use serde_json::Value;

use crate::admission::{Finding, Level, Operation, Path, Request};
use crate::catalog::{Index, Kind, LiveRead, Reference, Stored, View};
use crate::landscaper::annotations::DRY_RUN_ANNOTATION;
use crate::landscaper::dry_run::is_running;
use crate::landscaper::dry_run::run;
use crate::landscaper::dry_run_annotations::{DryRunAnnotations, annotation};
use crate::landscaper::kinds::{self, BY_OWNER, DEPLOY_ITEMS, EXECUTIONS, INSTALLATIONS, owner_key};
use crate::landscaper::owner::owner;
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

const UPDATE: &[Operation] = &[Operation::Update];

/// The paths of `jobID` and `jobIDFinished` in an Installation. The two values differ while Landscaper processes the
/// Installation.
const JOB: &[Path] = &[&["status", "jobID"], &["status", "jobIDFinished"]];

static MATCHERS: [Match; 1] = [kinds::matches(&INSTALLATIONS, UPDATE, FailurePolicy::Ignore).reading(JOB)];

/// The rule definition of DR009.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DR009",
        name: "switched-while-deployed",
        level: Level::Deny,
        summary: "a root that is switched to dry run while it is deployed or during its real run, or to a real run during its dry run",
        page: include_str!("../../../docs/rules/DR009.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[&DEPLOY_ITEMS, &EXECUTIONS, &INSTALLATIONS],
    live_reads: Some(live_reads),
    check,
};

/// The maximum number of objects below a root Installation that one search examines, to bound the time of a decision.
/// The search finds DeployItems that prevent a switch between dry run and real run.
const MAX_EXAMINED: usize = 2_000;
/// Maximum number of DeployItems that are read from the API server at once, to check whether they prevent a switch
/// between dry run and real run. A few are enough, because a single DeployItem can prevent the switch. If none of them
/// prevents it any more, the next ones are read.
const MAX_LIVE_READS: usize = 5;

/// The direction in which an update switches a root Installation: to dry run, or to a real run.
#[derive(Clone, Copy)]
enum Switch {
    ToDryRun,
    ToRealRun,
}

impl Switch {
    fn of(request: &Request<'_>) -> Option<Self> {
        let is_root = owner(request.object()).is_none();
        let before = DryRunAnnotations::of(request.old_object()).is_dry_run();
        match (before, DryRunAnnotations::of(request.object()).is_dry_run()) {
            (false, true) if is_root => Some(Self::ToDryRun),
            (true, false) if is_root => Some(Self::ToRealRun),
            _ => None,
        }
    }

    /// Returns whether the DeployItem `item` prevents this switch between dry run and real run. `item` is below the
    /// root Installation that is switched.
    fn is_prevented_by(self, item: &Value) -> bool {
        let is_dry_run = DryRunAnnotations::of(item).is_dry_run();
        match self {
            Self::ToDryRun => !is_dry_run && (is_deployed(item) || is_running(item)),
            Self::ToRealRun => is_dry_run && is_running(item),
        }
    }
}

fn live_reads(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    let items = Switch::of(request).map(|switch| preventing(switch, request, view)).unwrap_or_default();
    let references = items.iter().map(|(item, _)| Reference::new(&DEPLOY_ITEMS, &request.namespace, item));
    let wanted: Vec<_> = references.collect();
    if wanted.iter().any(|item| view.live_read(item).is_some()) { Vec::new() } else { wanted }
}

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let Some(switch) = Switch::of(request) else { return Vec::new() };
    let finding = during_run(switch, request).or_else(|| because_of_item(switch, request, view));
    finding.into_iter().collect()
}

/// Returns a finding if the current job of the root Installation in the request has not finished.
///
/// No live read is needed, because the request contains the current object.
fn during_run(switch: Switch, request: &Request<'_>) -> Option<Finding> {
    let message = match switch {
        Switch::ToDryRun => "its real run is under way: deployers complete the jobs that they have started",
        Switch::ToRealRun => "its dry run is under way: DeployItems that it has not processed would be deployed",
    };
    let finding = || RULE.finding(annotation(DRY_RUN_ANNOTATION), message).help(WAIT);
    is_running(request.old_object()).then(finding)
}

const WAIT: &str = "wait until status.jobIDFinished equals status.jobID, or interrupt the run";

fn because_of_item(switch: Switch, request: &Request<'_>, view: &View<'_>) -> Option<Finding> {
    let (item, stored) = preventing(switch, request, view).into_iter().next()?;
    let (message, help) = match switch {
        Switch::ToDryRun if is_running(&stored) => {
            (format!("DeployItem {item:?} is being deployed: its deployer does not stop the job"), WAIT)
        }
        Switch::ToDryRun => (
            format!("DeployItem {item:?} is deployed: in dry run, its deletion removes nothing from the target"),
            "apply a second Installation for the dry run, under another name",
        ),
        Switch::ToRealRun => (format!("the dry run of DeployItem {item:?} is under way: it would be deployed"), WAIT),
    };
    Some(RULE.finding(annotation(DRY_RUN_ANNOTATION), message).help(help))
}

/// Checks whether the current version of the DeployItem `item` prevents the switch between dry run and real run. If so,
/// returns the name and the content of the DeployItem; otherwise `None`. `item` is the cached version. The current
/// version comes from a live read of the API server. Without a result of this read, `item` is checked.
fn still(switch: Switch, item: &Stored, request: &Request<'_>, view: &View<'_>) -> Option<(String, Value)> {
    let reference = Reference::new(&DEPLOY_ITEMS, &request.namespace, item.name());
    let now = match view.live_read(&reference) {
        Some(LiveRead::Exists(now)) => now.value().clone(),
        Some(LiveRead::Gone) => return None,
        _ => item.value().clone(),
    };
    switch.is_prevented_by(&now).then(|| (item.name().to_owned(), now))
}

/// Reports whether a deployer other than the dry-run deployer has processed a DeployItem.
///
/// Uses the status of the DeployItem, because its dry-run annotation does not show what happened before. The annotation
/// is copied from the root Installation, and changes with it.
fn is_deployed(item: &Value) -> bool {
    let text = |pointer| item.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let was_dry_run = text("/status/deployer/name") == run::NAME && !run::shows_deployment(item);
    !text("/status/phase").is_empty() && !was_dry_run
}

/// Returns the DeployItems below the root Installation in the request that prevent its switch between dry run and real
/// run. `switch` is the direction of this switch. For example, a DeployItem prevents the switch while a deployer
/// processes it.
///
/// Only DeployItems in the catalog, a cache of objects, are examined. Returns the names and the current content of at
/// most [`MAX_LIVE_READS`] of them.
fn preventing(switch: Switch, request: &Request<'_>, view: &View<'_>) -> Vec<(String, Value)> {
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
        found.extend(items.iter().filter_map(|item| still(switch, item, request, view)));
        if found.len() >= MAX_LIVE_READS {
            break;
        }
        for next in [&EXECUTIONS, &INSTALLATIONS] {
            open.extend(below(next).iter().map(|object| (next, object.name().to_owned())));
        }
    }
    found.truncate(MAX_LIVE_READS);
    found
}
