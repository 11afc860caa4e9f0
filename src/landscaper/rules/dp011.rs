//! DP011: reports a DeployItem of a type that no known deployer serves.

use std::collections::BTreeSet;

use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::deployer::configuration::Deployers;
use crate::landscaper::deployer::responsibility::{self, Route, registered};
use crate::landscaper::kinds::{self, ALL, DEPLOY_ITEMS, DEPLOYER_REGISTRATIONS};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};
use crate::suggestion;

static MATCHERS: [Match; 1] =
    [kinds::matches(&DEPLOY_ITEMS, &[Operation::Create], FailurePolicy::Ignore).reading(responsibility::READ)];

/// The rule definition of DP011.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DP011",
        name: "type-that-nobody-serves",
        level: Level::Warn,
        summary: "a DeployItem of a type that no known deployer serves",
        page: include_str!("../../../docs/rules/DP011.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[&DEPLOYER_REGISTRATIONS],
    live_reads: None,
    check,
};

/// Maximum number of DeployerRegistrations that are read. Clusters have only a few.
const MAX_REGISTRATIONS: usize = 1000;

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    if view.is_pending(&DEPLOYER_REGISTRATIONS) {
        return Vec::new();
    }
    let served = served(view);
    let type_name = Route::specified(request.object()).type_name;
    if served.is_empty() || type_name.is_empty() || served.contains(type_name) {
        return Vec::new();
    }
    let near = suggestion::most_similar(type_name, served.iter().map(String::as_str));
    let near = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    let message = format!("no known deployer serves the type {type_name:?}, so no deployer picks this up{near}");
    let help =
        "correct the spelling of the type, or add the type to deployers.identities in the configuration of Portcullis";
    let all = served.iter().cloned().collect::<Vec<_>>().join(", ");
    vec![RULE.finding(FieldPath::of(["spec", "type"]), message).found(type_name).allowed(all).help(help)]
}

/// Returns the types of DeployItems that a known deployer serves, according to the configuration and the
/// DeployerRegistrations.
fn served(view: &View<'_>) -> BTreeSet<String> {
    let configured = Deployers::of(view);
    let configured = configured.iter().flat_map(|deployers| &deployers.identities);
    let mut served: BTreeSet<_> = configured.flat_map(|deployer| deployer.types.clone()).collect();
    for registration in view.indexed(&DEPLOYER_REGISTRATIONS, &ALL, "", "", MAX_REGISTRATIONS) {
        served.extend(registered(registration.value()).map(str::to_owned));
    }
    served
}
