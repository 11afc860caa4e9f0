//! LS008: reports DeployItem templates that Landscaper rejects. The templates are part of an Execution.

use std::collections::HashSet;

use super::WRITES;
use crate::admission::{Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::execution;
use crate::landscaper::kinds::{self, EXECUTIONS};
use crate::landscaper::validation::templates::{self, Template};
use crate::landscaper::validation::{Findings, names};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::matches(&EXECUTIONS, WRITES, FailurePolicy::Ignore)];

/// The definition of rule LS008.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "LS008",
        name: "landscaper-templates",
        level: Level::Off,
        summary: "a template in an Execution without name or type, with an incomplete Target, an invalid label, or a duplicate name",
        page: include_str!("../../../docs/rules/LS008.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mut findings = Findings::new(&RULE, request);
    let Ok(templates) = execution::list(findings.spec()) else { return Vec::new() };
    let templates = templates::of(&templates);
    let mut seen = HashSet::new();
    for template in &templates {
        let name = template.text("name");
        if name.is_empty() {
            report_missing(template, &["name"], &mut findings);
        } else if !seen.insert(name) {
            let message = template.message(&format!("duplicate name {name:?}"));
            findings.add(template.place.clone(), message, "give each template a unique name");
        }
        if template.text("type").is_empty() {
            report_missing(template, &["type"], &mut findings);
        }
        for key in ["name", "namespace"] {
            let target = execution::member(template.value, "target").filter(|target| !target.is_null());
            if target.is_some_and(|target| templates::text(target, key).is_empty()) {
                report_missing(template, &["target", key], &mut findings);
            }
        }
        labels(template, &mut findings);
    }
    findings.into_found()
}

fn report_missing(template: &Template<'_>, keys: &[&str], findings: &mut Findings<'_>) {
    let key = keys.join(".");
    findings.add(template.field(keys), template.message(&format!("{key} is missing")), format!("write {key}"));
}

fn labels(template: &Template<'_>, findings: &mut Findings<'_>) {
    let labels = execution::member(template.value, "labels").and_then(|labels| labels.as_object());
    for (key, value) in labels.into_iter().flatten() {
        let wrong = names::key(key).or_else(|| names::label_value(value.as_str().unwrap_or_default()));
        if let Some(problem) = wrong {
            let message = template.message(&format!("{key:?} is not a valid label: {problem}"));
            findings.add(template.field(&["labels"]), message, "write another label");
        }
    }
}
