//! LS005: reports exports that Landscaper rejects. The exports are part of an Installation.

use std::collections::HashSet;

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, INSTALLATIONS};
use crate::landscaper::validation::{Findings, list, member, text};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::matches(&INSTALLATIONS, WRITES, FailurePolicy::Ignore)];

/// The definition of rule LS005.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "LS005",
        name: "landscaper-exports",
        level: Level::Off,
        summary: "an export without a name or a destination, or with a duplicate name",
        page: include_str!("../../../docs/rules/LS005.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mut findings = Findings::new(&RULE, request);
    let exports = member(findings.spec(), "exports");
    for (sort, destination) in [("data", "dataRef"), ("targets", "target")] {
        let mut seen = HashSet::new();
        for (field, export) in list(exports, sort, &FieldPath::of(["spec", "exports"])) {
            findings.require(export, &field, destination);
            match text(export, "name") {
                "" => findings.require(export, &field, "name"),
                name => findings.unique(name, field, &mut seen),
            }
        }
    }
    findings.into_found()
}
