//! LS003: reports a blueprint or component descriptor with both, or neither, of `inline` and `ref`.

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, INSTALLATIONS};
use crate::landscaper::validation::{Findings, member};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::matches(&INSTALLATIONS, WRITES, FailurePolicy::Ignore)];

/// The definition of rule LS003.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "LS003",
        name: "landscaper-one-definition",
        level: Level::Off,
        summary: "an Installation whose blueprint or component descriptor has both, or neither, of inline and ref",
        page: include_str!("../../../docs/rules/LS003.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mut findings = Findings::new(&RULE, request);
    let spec = findings.spec();
    findings.exactly_one(member(spec, "blueprint"), &FieldPath::of(["spec", "blueprint"]), &["ref", "inline"]);
    let descriptor = member(spec, "componentDescriptor");
    if !descriptor.is_null() {
        findings.exactly_one(descriptor, &FieldPath::of(["spec", "componentDescriptor"]), &["ref", "inline"]);
    }
    findings.into_found()
}
