//! LS004: reports imports of an Installation that Landscaper rejects.

use std::collections::HashSet;

use serde_json::Value;

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, INSTALLATIONS};
use crate::landscaper::validation::{Findings, list, member, text};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::matches(&INSTALLATIONS, WRITES, FailurePolicy::Ignore)];

/// The definition of rule LS004.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "LS004",
        name: "landscaper-imports",
        level: Level::Off,
        summary: "an import without a name or a source, with several sources, or with a duplicate name",
        page: include_str!("../../../docs/rules/LS004.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

const DATA_SOURCES: [&str; 3] = ["dataRef", "secretRef", "configMapRef"];
const TARGET_SOURCES: [&str; 5] = ["target", "targets", "targetMap", "targetMapRef", "targetListRef"];

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mut findings = Findings::new(&RULE, request);
    let imports = member(findings.spec(), "imports");
    let place = FieldPath::of(["spec", "imports"]);
    let mut seen = HashSet::new();
    for (field, import) in list(imports, "data", &place) {
        findings.exactly_one(import, &field, &DATA_SOURCES);
        for key in ["secretRef", "configMapRef"] {
            let reference = member(import, key);
            if !reference.is_null() {
                findings.require(reference, &field.key(key), "name");
            }
        }
        match text(import, "name") {
            "" => findings.require(import, &field, "name"),
            name => findings.unique(name, field, &mut seen),
        }
    }
    for (field, import) in list(imports, "targets", &place) {
        findings.require(import, &field, "name");
        findings.exactly_one(import, &field, &TARGET_SOURCES);
        targets(import, &field, &mut findings);
        findings.unique(text(import, "name"), field, &mut seen);
    }
    findings.into_found()
}

fn targets(import: &Value, place: &FieldPath, findings: &mut Findings<'_>) {
    let named = list(import, "targets", place);
    for (field, _) in named.into_iter().filter(|(_, target)| target.as_str().is_none_or(str::is_empty)) {
        findings.add(field, "a Target has no name", "write the name of a Target, or remove the entry");
    }
    for (key, target) in member(import, "targetMap").as_object().into_iter().flatten() {
        let field = place.key("targetMap").key(key);
        if !is_key(key) {
            let help = "write 1 to 63 lowercase letters, digits, dots and dashes, with a letter or digit at both ends";
            findings.add(field.clone(), format!("{key:?} is not a valid key"), help);
        }
        if target.as_str().is_none_or(str::is_empty) {
            findings.add(field, "a Target has no name", "write the name of a Target, or remove the entry");
        }
    }
}

fn is_key(key: &str) -> bool {
    let is_end = |c: Option<u8>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let is_inner = |c: u8| is_end(Some(c)) || [b'.', b'-'].contains(&c);
    key.len() <= 63 && is_end(key.bytes().next()) && is_end(key.bytes().next_back()) && key.bytes().all(is_inner)
}
