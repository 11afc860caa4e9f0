//! DR004: reports exports whose path does not evaluate on its fragment.

use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::dry_run::export::Failure;
use crate::landscaper::dry_run::fragment::{self, Identity};
use crate::landscaper::dry_run::reading::{self, Configuration, Reading};
use crate::landscaper::export_path::Class;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS, DRY_RUN_CONFIGURATIONS};
use crate::rule::{Rule, RuleInfo};

/// The rule definition of DR004.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DR004",
        name: "path-does-not-fit-fragment",
        level: Level::Deny,
        summary: "an export whose jsonPath does not evaluate on its fragment",
        page: include_str!("../../../docs/rules/DR004.md"),
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
        let (item, export) = (reading.items.get(at)?, reading.items.get(at)?.exports.get(number)?);
        let report = Report::of(&failure)?;
        let field = export.field.key(report.field);
        let text = format!("{}, on {} in DryRunConfiguration {:?}", report.text, report.identity, configuration.name());
        let mut finding = RULE.finding(item.field(&field), item.message(&field, &text));
        finding.level = reading::level(request, view, report.level);
        Some(finding.help("fix the path, or add the field to that fragment"))
    };
    reading.failures(configuration.value()).into_iter().filter_map(finding).collect()
}

fn of_configuration(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for stored in reading::users(&request.namespace, &request.display_name(), view) {
        let reading = Reading::of(stored.value(), &request.namespace, view);
        for (_, _, failure) in reading.failures(request.object()) {
            let Some(report) = Report::of(&failure) else { continue };
            let fragment = fragment::find(request.object(), report.identity);
            let field = fragment.map_or_else(FieldPath::root, |fragment| fragment.field());
            let mut finding =
                RULE.finding(field, format!("{}, which DeployItem {:?} exports", report.text, stored.name()));
            finding.level = Level::Warn;
            findings.push(finding);
        }
    }
    findings
}

/// The parts of a finding about a failed export.
struct Report<'f> {
    identity: &'f Identity,
    field: &'static str,
    text: String,
    level: Level,
}

impl<'f> Report<'f> {
    fn of(failure: &'f Failure) -> Option<Self> {
        match failure {
            // DR005 and DR008 report these.
            Failure::Missing(_) | Failure::Key(_) => None,
            Failure::Path { error, .. } if error.class() == Class::Parse => None,
            Failure::Path { identity, second, error } => {
                let field = if *second { "fromObjectRef" } else { "jsonPath" };
                let level = if error.class() == Class::Bound { Level::Warn } else { RULE.info.level };
                Some(Self { identity, field, text: error.to_string(), level })
            }
            Failure::Reference { identity, problem } => {
                let text = format!("the value does not name an object: {problem}");
                Some(Self { identity, field: "jsonPath", text, level: RULE.info.level })
            }
        }
    }
}
