//! OW001: reports a value in a ComponentVersionOverwrites object, a Context or a component reference that Landscaper
//! cannot decode.

use super::WRITES;
use crate::admission::{Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::context::Context;
use crate::landscaper::decode::Problem;
use crate::landscaper::installation;
use crate::landscaper::kinds::{self, CONTEXTS, INSTALLATIONS, OVERWRITES};
use crate::landscaper::substitution::Entries;
use crate::rule::{FailurePolicy, Match, MatchCondition, Rule, RuleInfo};

/// Match condition that is true for a write of a Context if both of these conditions hold:
/// - The Context names no overwrites, neither before nor after the write.
/// - The repository context of the Context is an object or is missing.
///
/// If the webhook does not answer, these writes are admitted, and other writes of Contexts are denied.
///
/// Landscaper's context controller creates a Context `default` without overwrites in every namespace. The controller
/// retries a denied write about every 40 ms.
static WITHOUT_OVERWRITES: MatchCondition = MatchCondition {
    name: "without-overwrites",
    expression:
        "!has(object.componentVersionOverwrites) && (oldObject == null || !has(oldObject.componentVersionOverwrites)) &&
           (!has(object.repositoryContext) || type(object.repositoryContext) == map)",
};

static MATCHERS: [Match; 3] = [
    kinds::matches(&OVERWRITES, WRITES, FailurePolicy::Fail),
    kinds::matches(&CONTEXTS, WRITES, FailurePolicy::FailUnless(&WITHOUT_OVERWRITES)),
    kinds::matches(&INSTALLATIONS, WRITES, FailurePolicy::Ignore).reading(installation::REFERENCE),
];

/// The definition of rule OW001.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "OW001",
        name: "undecodable",
        level: Level::Deny,
        summary: "a repositoryContext that is not an object, or another value that Landscaper cannot decode",
        page: include_str!("../../../docs/rules/OW001.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mut problems = Vec::new();
    let object = request.object();
    if kinds::is(&OVERWRITES, request) {
        problems.clone_from(&Entries::of(request).problems);
    } else if kinds::is(&CONTEXTS, request) {
        Context::read(object, &mut problems);
    } else if kinds::is(&INSTALLATIONS, request) {
        installation::component_reference(object, &mut problems);
    }
    problems.into_iter().map(finding).collect()
}

fn finding(problem: Problem) -> Finding {
    let breaks = "Landscaper cannot decode this, and fails every Installation that uses it";
    let message = format!("expected {}, found {}: {breaks}", problem.wanted, problem.is);
    let is_context = problem.wanted == "an object" && problem.field.to_string().ends_with("repositoryContext");
    let finding = RULE.finding(problem.field, message).found(problem.found).allowed(problem.wanted);
    if is_context { finding.help("write an object, such as {type: ociRegistry, baseUrl: …}") } else { finding }
}
