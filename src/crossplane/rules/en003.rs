//! EN003: transforms with invalid regular expressions, capture groups or formats, and transforms that do not accept the
//! type of their input.

use super::{WRITTEN_COMPOSITIONS, text_findings, with_help_in_message};
use crate::admission::{Finding, Level, Request};
use crate::catalog::View;
use crate::crossplane::composition::{self, Topic};
use crate::crossplane::kinds::{self, DEFINITIONS};
use crate::crossplane::structural::Structural;
use crate::rule::{Rule, RuleInfo};

/// The rule definition of EN003.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "EN003",
        name: "environment-expression",
        level: Level::Deny,
        summary: "a regular expression, a group, a format or a chain of transforms that can never work",
        page: include_str!("../../../docs/rules/EN003.md"),
    },
    matchers: &WRITTEN_COMPOSITIONS,
    looks_up: &[&DEFINITIONS],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let mut findings = text_findings(&RULE, Topic::Expression, request);
    findings.extend(of_composite(request, view));
    findings
}

/// Returns findings about transforms that do not accept the types that the composite's schema declares.
fn of_composite(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let composition = request.object();
    let Some((definition, version)) = kinds::definition_of(composition, view) else { return Vec::new() };
    let Some(schema) = Structural::of(definition.value(), version) else { return Vec::new() };
    let problems = composition::against_composite(composition, schema).into_iter();
    let finding = |problem: composition::Problem| {
        let mut finding = RULE.finding(problem.field, problem.message);
        finding.help = problem.help;
        finding.level = finding.level.min(Level::Warn);
        with_help_in_message(finding)
    };
    problems.map(finding).collect()
}
