//! DP010: reports a deployer that writes a DeployItem of another deployer. Also warns if a user that is not in the
//! configuration writes the status of a DeployItem.

use super::UPDATE;
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::{Reference, View};
use crate::landscaper::deployer::configuration::{Deployer, Deployers};
use crate::landscaper::deployer::responsibility::{self, Responsible, Route};
use crate::landscaper::kinds::{self, DEPLOY_ITEMS, DEPLOYER_REGISTRATIONS, TARGETS};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 2] = [
    kinds::status(&DEPLOY_ITEMS, FailurePolicy::Ignore).reading(responsibility::READ),
    kinds::matches(&DEPLOY_ITEMS, UPDATE, FailurePolicy::Ignore).reading(responsibility::READ),
];

/// The rule definition of DP010.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DP010",
        name: "another-deployers-item",
        level: Level::Deny,
        summary: "a deployer that writes a DeployItem of a type or Target that it does not serve",
        page: include_str!("../../../docs/rules/DP010.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[&DEPLOYER_REGISTRATIONS, &TARGETS],
    live_reads: Some(unread),
    check,
};

/// The role of the user who sends a request, according to the section `deployers` of the configuration file.
enum Writer<'d> {
    /// Landscaper itself, or a user who may restore backups.
    Trusted,
    /// The user is not listed in the section `deployers` of the configuration file. So it is neither Landscaper, nor a
    /// deployer, nor a user who may restore backups.
    Unknown,
    /// The user is a deployer. The value contains all entries of the configuration that include the user.
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

/// Determines whether a deployer is responsible for the DeployItem in a request, based on the DeployItem before the
/// change. `entries` are the configuration entries of the deployer. If the deployer does not seem to be responsible,
/// also returns references to objects that must be read from the API server to verify this.
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

/// Returns a warning if the status of a DeployItem is written by a user that the configuration does not list. Only
/// Landscaper and deployers should write the status. Other fields may be written by any user.
fn unknown(request: &Request<'_>) -> Option<Finding> {
    let name = &request.user.name;
    let message = format!("{name:?} writes the status of a DeployItem, but is not in the configuration of Portcullis");
    let mut finding = RULE.finding(FieldPath::of(["status"]), message);
    finding.level = Level::Warn;
    let help = "add it to deployers.identities with the types that it serves, or to deployers.landscaper";
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
    Some(finding.help("in the deployer, check type and Target first, and ignore this DeployItem"))
}
