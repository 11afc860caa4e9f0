//! DR004: reports an export whose `jsonPath` selects no value in a dry run. In a dry run, `jsonPath` is not evaluated
//! on the object on the target cluster, but on an entry of a DryRunConfiguration. This entry may contain only a part of
//! the object.

use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::{Stored, View};
use crate::landscaper::dry_run::export::{Export, Failure};
use crate::landscaper::dry_run::fragment::{self, Identity};
use crate::landscaper::dry_run::item::Item;
use crate::landscaper::dry_run::reading;
use crate::landscaper::export_path::Class;
use crate::landscaper::kinds::{DEPLOY_ITEMS, DRY_RUN_CONFIGURATIONS};
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
    reading::findings(request, view, of_item, |stored, failure| of_configuration(request, stored, failure))
}

fn of_item(item: &Item, export: &Export, configuration: &Stored, failure: &Failure) -> Option<Finding> {
    let report = Report::of(failure)?;
    let field = export.field.key(report.field);
    let text = format!("{}, on {} in DryRunConfiguration {:?}", report.text, report.identity, configuration.name());
    let mut finding = RULE.finding(item.field(&field), item.message(&field, &text));
    finding.level = report.level;
    Some(finding.help("fix the path, or add the field to that fragment"))
}

fn of_configuration(request: &Request<'_>, stored: &Stored, failure: &Failure) -> Option<Finding> {
    let report = Report::of(failure)?;
    let fragment = fragment::find(request.object(), report.identity);
    let field = fragment.map_or_else(FieldPath::root, |fragment| fragment.field());
    Some(RULE.finding(field, format!("{}, which DeployItem {:?} exports", report.text, stored.name())))
}

/// The data for a finding of rule DR004: the object that was searched, the field that contains the JSONPath, the
/// message and the level. The finding reports an export that has no value.
struct Report<'f> {
    identity: &'f Identity,
    field: &'static str,
    text: String,
    level: Level,
}

impl<'f> Report<'f> {
    fn of(failure: &'f Failure) -> Option<Self> {
        match failure {
            // DR005 and DR008 report these failures.
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
