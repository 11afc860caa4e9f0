//! DR005: reports exports of a dry run without a fragment.

use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::dry_run::export::Failure;
use crate::landscaper::dry_run::fragment::Identity;
use crate::landscaper::dry_run::reading::{self, Configuration, Reading};
use crate::landscaper::kinds::{self, DEPLOY_ITEMS, DRY_RUN_CONFIGURATIONS};
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
    if kinds::is(&DRY_RUN_CONFIGURATIONS, request) {
        return of_configuration(request, view);
    }
    let reading = Reading::of(request.object(), &request.namespace, view);
    let Configuration::Found(configuration) = &reading.configuration else { return Vec::new() };
    let finding = |(at, number, failure): (usize, usize, Failure)| {
        let Failure::Missing(identity) = failure else { return None };
        let (item, export) = (reading.items.get(at)?, reading.items.get(at)?.exports.get(number)?);
        let field = export.field.key("fromResource");
        let text = format!("DryRunConfiguration {:?} has no fragment of {identity}", configuration.name());
        let mut finding = RULE.finding(item.field(&field), item.message(&field, &text));
        finding.level = reading::level(request, view, finding.level);
        Some(finding.help(help(&identity)))
    };
    reading.failures(configuration.value()).into_iter().filter_map(finding).collect()
}

fn help(identity: &Identity) -> String {
    format!(
        "add this fragment to spec.exports of the DryRunConfiguration, with the exported field: {}",
        identity.to_fragment()
    )
}

fn of_configuration(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for stored in reading::users(&request.namespace, &request.display_name(), view) {
        let reading = Reading::of(stored.value(), &request.namespace, view);
        for (_, _, failure) in reading.failures(request.object()) {
            let Failure::Missing(identity) = failure else { continue };
            let message =
                format!("there is no fragment of {identity}, which DeployItem {:?} exports from", stored.name());
            let mut finding = RULE.finding(FieldPath::of(["spec", "exports"]), message);
            finding.level = Level::Warn;
            findings.push(finding.help(help(&identity)));
        }
    }
    findings
}
