//! LS001: reports an object that Landscaper cannot decode.

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::decode::Problem;
use crate::landscaper::execution;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS, EXECUTIONS, INSTALLATIONS, TARGETS};
use crate::landscaper::validation::schema::{self, Type};
use crate::landscaper::validation::{Findings, member, text};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 4] = [
    kinds::matches(&DEPLOY_ITEMS, WRITES, FailurePolicy::Ignore),
    kinds::matches(&EXECUTIONS, WRITES, FailurePolicy::Ignore),
    kinds::matches(&INSTALLATIONS, WRITES, FailurePolicy::Ignore),
    kinds::matches(&TARGETS, WRITES, FailurePolicy::Ignore),
];

/// The definition of rule LS001.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "LS001",
        name: "landscaper-undecodable",
        level: Level::Off,
        summary: "an object that Landscaper cannot decode",
        page: include_str!("../../../docs/rules/LS001.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mut findings = Findings::new(&RULE, request);
    let object = request.object();
    let version = format!("{}/{}", kinds::GROUP, kinds::VERSION);
    for (key, wanted) in [("apiVersion", &*version), ("kind", &*request.resource.kind)] {
        let found = text(object, key);
        if !found.is_empty() && found != wanted {
            findings.add(
                FieldPath::of([key]),
                format!("{key} is {found:?}, not {wanted:?}"),
                format!("write {wanted}"),
            );
        }
    }
    // The schema of another kind is not known.
    if !findings.found.is_empty() {
        return findings.into_found();
    }
    let mut problems = Vec::new();
    let (schema, is_execution) = schema_of(request);
    schema.problems(object, &FieldPath::root(), &mut problems);
    for Problem { field, is, found, wanted } in problems {
        let message = format!("{found} is {is}, but Landscaper expects {wanted}: it cannot decode the object");
        findings.add(field, message, format!("write {wanted}"));
    }
    let spec = member(object, "spec");
    if let Some(Err(unreadable)) = (is_execution && spec.is_object()).then(|| execution::templates(spec)) {
        let message = format!("{unreadable}: Landscaper cannot decode the object");
        findings.add(FieldPath::of(["spec"]), message, "write the templates as a list, at spec.deployItems");
    }
    findings.into_found()
}

fn schema_of(request: &Request<'_>) -> (&'static Type, bool) {
    if kinds::is(&INSTALLATIONS, request) {
        (&schema::INSTALLATION, false)
    } else if kinds::is(&EXECUTIONS, request) {
        (&schema::EXECUTION, true)
    } else if kinds::is(&TARGETS, request) {
        (&schema::TARGET, false)
    } else {
        (&schema::DEPLOY_ITEM, false)
    }
}
