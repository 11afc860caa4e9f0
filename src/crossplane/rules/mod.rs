//! The rules with the prefix `EN`, which check Crossplane's EnvironmentConfigs, and the environments that Compositions
//! merge from them. Each rule has its own file.

mod en001;
mod en002;
mod en003;
mod en004;
mod en005;
mod en006;
mod en007;
mod en008;
mod en009;
mod en010;
mod en011;
mod en012;
mod en013;

use std::sync::Arc;

use crate::admission::{Finding, Level, Operation, Request};
use crate::crossplane::composition::{self, Problem, Topic};
use crate::crossplane::kinds::{self, COMPOSITIONS};
use crate::rule::{FailurePolicy, Match, Rule};

/// All rules about environments, in the order of their ids.
pub(super) static RULES: &[&Rule] = &[
    &en001::RULE,
    &en002::RULE,
    &en003::RULE,
    &en004::RULE,
    &en005::RULE,
    &en006::RULE,
    &en007::RULE,
    &en008::RULE,
    &en009::RULE,
    &en010::RULE,
    &en011::RULE,
    &en012::RULE,
    &en013::RULE,
];

const WRITES: &[Operation] = &[Operation::Create, Operation::Update];

/// Request matcher for writes of Compositions. The API server denies these requests while the webhook is unavailable.
/// This is acceptable, because Compositions are rarely written, and only by people or pipelines.
static WRITTEN_COMPOSITIONS: [Match; 1] = [kinds::matches(&COMPOSITIONS, &["v1"], WRITES, FailurePolicy::Fail)];

/// Request matcher for writes of composites. The API server admits these requests while the webhook is unavailable,
/// because Crossplane also writes composites and must not be blocked.
static WRITTEN_COMPOSITES: [Match; 1] = [kinds::composites(WRITES, FailurePolicy::Ignore)];

/// Request matchers for writes of Compositions, composites and claims. Crossplane writes the composite of a claim, so
/// only Crossplane gets warnings about the composite. To warn users, the rules also check the claim.
static WRITTEN_COMPOSITIONS_AND_COMPOSITES: [Match; 3] = [
    kinds::matches(&COMPOSITIONS, &["v1"], WRITES, FailurePolicy::Fail),
    kinds::composites(WRITES, FailurePolicy::Ignore),
    kinds::claims(WRITES, FailurePolicy::Ignore),
];

fn is_composite(request: &Request<'_>) -> bool {
    request.resource.group != kinds::GROUP
}

/// Returns a finding for each problem of a Composition that belongs to `topic`, such as invalid field paths.
///
/// If the Composition already had the problem before an update, the level of the finding is at most `warn`. So users
/// can fix the problems of a Composition step by step.
fn text_findings(rule: &Rule, topic: Topic, request: &Request<'_>) -> Vec<Finding> {
    let read = |object: &crate::admission::Object<'_>| object.view::<Arc<[Problem]>>(composition::problems);
    let before = if request.operation == Operation::Update { read(&request.old_object) } else { Arc::default() };
    let finding = |problem: &Problem| {
        let mut finding = rule.finding(problem.field.clone(), &problem.message);
        finding.help.clone_from(&problem.help);
        if problem.is_warning || before.iter().any(|known| known == problem) {
            finding.level = finding.level.min(Level::Warn);
        }
        with_help_in_message(finding)
    };
    read(&request.object).iter().filter(|problem| problem.topic == topic).map(finding).collect()
}

/// Moves the text in the field `help` to the end of the message, if the finding is a warning. The text says how to fix
/// the problem. The API server shows a warning to the user as one line. Findings that are not warnings stay as they
/// are.
fn with_help_in_message(mut finding: Finding) -> Finding {
    if finding.level == Level::Warn
        && let Some(help) = finding.help.take()
    {
        finding.message = format!("{}; {help}", finding.message);
    }
    finding
}
