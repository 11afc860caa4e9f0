//! The rules about environments, one file each.

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
use crate::rule::{Match, Outage, Rule};

/// The rules about environments.
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

/// Compositions as they are written: by people and pipelines, and rarely.
static WRITTEN_COMPOSITIONS: [Match; 1] = [kinds::matches(&COMPOSITIONS, &["v1"], WRITES, Outage::Refuse)];

/// Composites as people and Crossplane write them. Crossplane must go on while nobody answers.
static WRITTEN_COMPOSITES: [Match; 1] = [kinds::composites(WRITES, Outage::Admit)];

/// Compositions as they are written, the composites that use them, and the claims that composites are made of: warnings
/// about a composite of a claim reach Crossplane's controller alone.
static WRITTEN_COMPOSITIONS_AND_COMPOSITES: [Match; 3] = [
    kinds::matches(&COMPOSITIONS, &["v1"], WRITES, Outage::Refuse),
    kinds::composites(WRITES, Outage::Admit),
    kinds::claims(WRITES, Outage::Admit),
];

fn is_composite(request: &Request<'_>) -> bool {
    request.resource.group != kinds::GROUP
}

/// What is wrong with the text of a Composition on one topic.
///
/// What an update leaves as it was is warned about only: a Composition that is in use must stay mendable step by step.
fn of_text(rule: &Rule, topic: Topic, request: &Request<'_>) -> Vec<Finding> {
    let read = |object: &crate::admission::Object<'_>| object.view::<Arc<[Problem]>>(composition::problems);
    let before = if request.operation == Operation::Update { read(&request.old_object) } else { Arc::default() };
    let finding = |problem: &Problem| {
        let mut finding = rule.finding(problem.field.clone(), &problem.message);
        finding.help.clone_from(&problem.help);
        if problem.is_mild || before.iter().any(|known| known == problem) {
            finding.level = finding.level.min(Level::Warn);
        }
        told(finding)
    };
    read(&request.object).iter().filter(|problem| problem.topic == topic).map(finding).collect()
}

/// A warning is one line, which shows the help only where both are short: what to do about it is a part of the message.
fn told(mut finding: Finding) -> Finding {
    if finding.level == Level::Warn
        && let Some(help) = finding.help.take()
    {
        finding.message = format!("{}; {help}", finding.message);
    }
    finding
}
