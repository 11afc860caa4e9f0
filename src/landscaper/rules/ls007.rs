//! LS007: reports a DeployItem without a type, or with an incomplete Target.

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::landscaper::validation::{Findings, member};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::matches(&DEPLOY_ITEMS, WRITES, FailurePolicy::Ignore)];

/// The definition of rule LS007.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "LS007",
        name: "landscaper-deploy-item",
        level: Level::Off,
        summary: "a DeployItem without type, or whose target has no name or namespace",
        page: include_str!("../../../docs/rules/LS007.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mut findings = Findings::new(&RULE, request);
    let spec = findings.spec();
    findings.require(spec, &FieldPath::of(["spec"]), "type");
    let target = member(spec, "target");
    if !target.is_null() {
        for key in ["name", "namespace"] {
            findings.require(target, &FieldPath::of(["spec", "target"]), key);
        }
    }
    findings.into_found()
}
