//! DR008: reports exports that always fail, regardless of the objects on the target cluster. Also warns about exports
//! that the deployer ignores, and about two exports that write their values to the same field.

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::dry_run::export::{Deployer, Export};
use crate::landscaper::dry_run::item::{Item, items};
use crate::landscaper::dry_run::unless_unchanged;
use crate::landscaper::export_path::{self, Class, Path, PathError};
use crate::landscaper::kinds::{self, DEPLOY_ITEMS, EXECUTIONS};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 2] = [
    kinds::matches(&DEPLOY_ITEMS, WRITES, FailurePolicy::Ignore),
    kinds::matches(&EXECUTIONS, WRITES, FailurePolicy::Ignore),
];

/// The rule definition of DR008.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DR008",
        name: "export-that-cannot-work",
        level: Level::Deny,
        summary: "an export with an invalid path, without jsonPath, or with an incomplete fromResource; warns about keys that collide",
        page: include_str!("../../../docs/rules/DR008.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    // Landscaper's own webhook denies templates that cannot be read.
    let Ok(items) = items(request.object()) else { return Vec::new() };
    let mut findings: Vec<_> = items.iter().flat_map(of).collect();
    for finding in &mut findings {
        finding.level = unless_unchanged(request, finding.level, |object| vec![object.get("spec")]);
    }
    findings
}

fn of(item: &Item) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, export) in item.exports.iter().enumerate() {
        let mut report = |field: FieldPath, level: Level, text: &str, help: Option<&'static str>| {
            let mut finding = RULE.finding(item.field(&field), item.message(&field, text));
            finding.level = level;
            findings.push(match help {
                Some(help) => finding.help(help),
                None => finding,
            });
        };
        if export.from_resource.is_none() && export.deployer == Deployer::Manifest {
            let text = "is missing: the manifest deployer ignores exports without it";
            report(export.field.key("fromResource"), Level::Warn, text, None);
            continue;
        }
        for (field, text) in incomplete(export) {
            report(field, Level::Deny, text, None);
        }
        for (field, error) in unreadable(export) {
            report(field, Level::Deny, &error.to_string(), error.help());
        }
        if export.key.is_empty() {
            report(
                export.field.key("key"),
                Level::Warn,
                "is missing: the value is written to a field with an empty name",
                None,
            );
        }
        if let Some(earlier) = item.exports.iter().take(at).find(|earlier| collide(earlier, export)) {
            let text = format!("writes its value to the same place as {}: {:?}", earlier.field, earlier.key);
            report(export.field.key("key"), Level::Warn, &text, None);
        }
    }
    findings
}

/// Returns the required fields of an export that are missing, each with an explanation. Without these fields, the
/// deployer finds no object or no value.
fn incomplete(export: &Export) -> Vec<(FieldPath, &'static str)> {
    let mut missing = Vec::new();
    let mut want = |text: &str, field: FieldPath, why| {
        if text.is_empty() {
            missing.push((field, why));
        }
    };
    want(&export.json_path, export.field.key("jsonPath"), "is missing: it selects the exported value");
    if let Some(from) = &export.from_resource {
        let field = export.field.key("fromResource");
        want(&from.api_version, field.key("apiVersion"), "is missing: without it, no object is found");
        want(&from.kind, field.key("kind"), "is missing: without it, no object is found");
        want(&from.name, field.key("name"), "is missing: without it, no object is found");
        if export.from_manifests {
            want(&from.namespace, field.key("namespace"), "is missing: the helm deployer requires it in this list");
        }
    }
    if let Some(from) = &export.from_object_ref {
        let field = export.field.key("fromObjectRef");
        want(&from.api_version, field.key("apiVersion"), "is missing: without it, no object is found");
        want(&from.kind, field.key("kind"), "is missing: without it, no object is found");
        want(&from.json_path, field.key("jsonPath"), "is missing: it selects the exported value");
    }
    missing
}

/// Returns the parse errors of an export's paths and key. A path that only exceeds the limits of Portcullis may be
/// valid, and is not reported.
fn unreadable(export: &Export) -> Vec<(FieldPath, PathError)> {
    let mut paths = vec![(export.field.key("jsonPath"), Path::parse(&export.json_path).err())];
    if let Some(from) = &export.from_object_ref {
        paths.push((export.field.key("fromObjectRef").key("jsonPath"), Path::parse(&from.json_path).err()));
    }
    paths.push((export.field.key("key"), export_path::key(&export.key).err()));
    let errors = paths.into_iter().filter_map(|(field, error)| Some((field, error?)));
    errors.filter(|(_, error)| error.class() != Class::Bound).collect()
}

/// Reports whether two exports collide. This is the case if the path in the key of one export equals the path in the
/// key of the other export, or is a prefix of that path.
fn collide(a: &Export, b: &Export) -> bool {
    let place = |export: &Export| export_path::key(&export.key).map(|groups| groups.concat());
    let (Ok(a), Ok(b)) = (place(a), place(b)) else { return false };
    let shorter = a.len().min(b.len());
    a[..shorter] == b[..shorter]
}
