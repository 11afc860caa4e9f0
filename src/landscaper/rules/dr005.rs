//! DR005: reports an export that reads a missing object. Checks only exports of DeployItems in dry run, which read
//! objects from the DryRunConfiguration, not from the target cluster.

use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::{Stored, View};
use crate::landscaper::dry_run::export::{Export, Failure};
use crate::landscaper::dry_run::fragment::Identity;
use crate::landscaper::dry_run::item::Item;
use crate::landscaper::dry_run::reading;
use crate::landscaper::kinds::{DEPLOY_ITEMS, DRY_RUN_CONFIGURATIONS};
use crate::rule::{Rule, RuleInfo};

/// The rule definition of DR005.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DR005",
        name: "fragment-missing",
        level: Level::Deny,
        summary: "an export of a dry run whose object has no fragment",
        page: include_str!("../../../docs/rules/DR005.md"),
    },
    matchers: &reading::MATCHERS,
    looks_up: &[&DEPLOY_ITEMS, &DRY_RUN_CONFIGURATIONS],
    live_reads: Some(reading::live_reads),
    check,
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    reading::findings(request, view, of_item, of_configuration)
}

fn of_item(item: &Item, export: &Export, configuration: &Stored, failure: &Failure) -> Option<Finding> {
    let Failure::Missing(identity) = failure else { return None };
    let field = export.field.key("fromResource");
    let text = format!("DryRunConfiguration {:?} has no fragment of {identity}", configuration.name());
    Some(RULE.finding(item.field(&field), item.message(&field, &text)).help(help(identity)))
}

fn of_configuration(stored: &Stored, failure: &Failure) -> Option<Finding> {
    let Failure::Missing(identity) = failure else { return None };
    let message = format!("there is no fragment of {identity}, which DeployItem {:?} exports from", stored.name());
    Some(RULE.finding(FieldPath::of(["spec", "exports"]), message).help(help(identity)))
}

fn help(identity: &Identity) -> String {
    format!(
        "add this fragment to spec.exports of the DryRunConfiguration, with the exported field: {}",
        identity.to_fragment()
    )
}
