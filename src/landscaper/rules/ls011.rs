//! LS011: reports an export of a DeployItem without a required field, or with a field of the wrong type.

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::decode::Problem;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::landscaper::validation::schema;
use crate::landscaper::validation::{Findings, list, member};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::matches(&DEPLOY_ITEMS, WRITES, FailurePolicy::Ignore)];

/// The definition of rule LS011.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "LS011",
        name: "landscaper-export-of-an-item",
        level: Level::Off,
        summary: "an export of a DeployItem without key, jsonPath, or the names of the object that it reads",
        page: include_str!("../../../docs/rules/LS011.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mut findings = Findings::new(&RULE, request);
    let exports = member(member(findings.spec(), "config"), "exports");
    for (field, export) in list(exports, "exports", &FieldPath::of(["spec", "config", "exports"])) {
        let mut problems = Vec::new();
        schema::EXPORT.problems(export, &field, &mut problems);
        for Problem { field, is, found, wanted } in problems {
            findings.add(field, format!("{found} is {is}, but Landscaper expects {wanted}"), format!("write {wanted}"));
        }
        for (part, keys) in PARTS {
            let (object, place) = match part {
                "" => (export, field.clone()),
                part => (member(export, part), field.key(part)),
            };
            if object.is_object() {
                keys.iter().for_each(|key| findings.require(object, &place, key));
            }
        }
    }
    findings.into_found()
}

/// The required fields of an export and of the objects in it. Each entry is the key of an object and its required
/// fields; the empty key stands for the export itself.
const PARTS: [(&str, &[&str]); 3] = [
    ("", &["key", "jsonPath"]),
    ("fromResource", &["apiVersion", "kind", "name"]),
    ("fromObjectRef", &["apiVersion", "kind", "jsonPath"]),
];
