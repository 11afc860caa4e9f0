//! DP010: a deployer writes a DeployItem that is not its own.

use super::UPDATE;
use super::configuration::{Deployer, Deployers};
use super::responsibility::{self, Responsible, Route};
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::{Reference, View};
use crate::landscaper::kinds::{self, DEPLOY_ITEMS, DEPLOYER_REGISTRATIONS, TARGETS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 2] =
    [kinds::status(&DEPLOY_ITEMS, Outage::Admit), kinds::matches(&DEPLOY_ITEMS, UPDATE, Outage::Admit)];

/// The row of DP010.
pub(super) static RULE: Rule = Rule {
    id: "DP010",
    name: "another-deployers-item",
    level: Level::Deny,
    summary: "a deployer that writes a DeployItem of a type or Target that it does not serve",
    scope: &SCOPE,
    looks_up: &[&DEPLOYER_REGISTRATIONS, &TARGETS],
    confirm: Some(unread),
    check,
    page: Page {
        why: "A deployer sees every DeployItem, and must never modify one of another type in any way. The \
              configuration says who the deployers are and which types and Targets each of them serves; a write to \
              any other DeployItem is refused, to its status as to the rest of it. A write of a status by somebody \
              whom the configuration does not name is warned about. Without the section `deployers` the rule says \
              nothing.",
        wrong: Example {
            stored: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DeployItem
metadata:
  name: test-item
  namespace: cu-example
spec:
  type: landscaper.gardener.cloud/helm
status:
  phase: Init
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
  type: landscaper.gardener.cloud/helm
status:
  phase: Progressing
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
  phase: Init
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
  jobIDFinished: a
  lastReconcileTime: \"2026-01-01T12:00:00Z\"
",
        },
        mend: "In the deployer, compare `spec.type` and the Target before anything else, and leave what is not its \
              own alone. If it is its own, name the type, or the selector, in the configuration.",
    },
};

/// Who writes.
enum Writer<'d> {
    /// Landscaper, or a backup.
    Trusted,
    /// Nobody that the configuration names.
    Unknown,
    /// A deployer, by as many entries as name it.
    Deployer(Vec<&'d Deployer>),
}

fn writer<'d>(deployers: &'d Deployers, request: &Request<'_>) -> Writer<'d> {
    let user = &request.user;
    if deployers.landscaper.has(user) || deployers.restorers.has(user) {
        return Writer::Trusted;
    }
    let entries: Vec<_> = deployers.identities.iter().filter(|deployer| deployer.is(user)).collect();
    if entries.is_empty() { Writer::Unknown } else { Writer::Deployer(entries) }
}

/// Whether the DeployItem, as it was before, is one of the writer's; and what to read to be certain.
fn responsible(entries: &[&Deployer], request: &Request<'_>, view: &View<'_>) -> (Responsible, Vec<Reference>) {
    let route = Route::of(request.old_object());
    let judge = |entry: &&Deployer| responsibility::of(entry, &route, &request.namespace, view);
    let judged: Vec<_> = entries.iter().map(judge).collect();
    let unread = judged.iter().filter_map(|(_, unread)| unread.clone()).collect();
    let has = |wanted: &Responsible| judged.iter().any(|(found, _)| found == wanted);
    let order = [Responsible::Yes, Responsible::Unknown, Responsible::OtherTarget];
    let found = order.into_iter().find(has).unwrap_or(Responsible::OtherType);
    if found == Responsible::Yes { (found, Vec::new()) } else { (found, unread) }
}

fn unread(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    let Some(deployers) = Deployers::of(view) else { return Vec::new() };
    match writer(&deployers, request) {
        Writer::Deployer(entries) => responsible(&entries, request, view).1,
        _ => Vec::new(),
    }
}

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let Some(deployers) = Deployers::of(view) else { return Vec::new() };
    match writer(&deployers, request) {
        Writer::Trusted => Vec::new(),
        Writer::Unknown => unknown(request).into_iter().collect(),
        Writer::Deployer(entries) => not_its_own(&entries, request, view).into_iter().collect(),
    }
}

/// People may edit DeployItems; their status is for Landscaper and the deployers.
fn unknown(request: &Request<'_>) -> Option<Finding> {
    let name = &request.user.name;
    let message = format!("{name:?} writes the status of a DeployItem, and the configuration does not say who that is");
    let mut finding = RULE.finding(FieldPath::of(["status"]), message);
    finding.level = Level::Warn;
    let help = "name it under deployers.identities with the types it serves, or under deployers.landscaper";
    (request.resource.subresource == "status").then(|| finding.help(help))
}

fn not_its_own(entries: &[&Deployer], request: &Request<'_>, view: &View<'_>) -> Option<Finding> {
    let route = Route::of(request.old_object());
    let (found, name) = (responsible(entries, request, view).0, &request.user.name);
    let (field, message, value) = match found {
        Responsible::Yes | Responsible::Unknown => return None,
        Responsible::OtherType => {
            let message = format!("{name:?} does not serve the type {:?}", route.type_name);
            (FieldPath::of(["spec", "type"]), message, route.type_name)
        }
        Responsible::OtherTarget => {
            let target = route.target.unwrap_or_default();
            let message = format!("{name:?} serves the type {:?}, but not the Target {target:?}", route.type_name);
            (FieldPath::of(["spec", "target", "name"]), message, target)
        }
    };
    let message = format!("{message}: a deployer must never modify another deployer's DeployItem in any way");
    let served: Vec<_> =
        entries.iter().flat_map(|entry| entry.types.iter().chain(&entry.registrations)).cloned().collect();
    let finding = RULE.finding(field, message).found(value).allowed(served.join(", "));
    Some(finding.help("in the deployer, look at type and Target before anything else, and leave this one alone"))
}
