//! OW003: reports a ComponentVersionOverwrites entry whose `substitution` has no effect.

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, OVERWRITES};
use crate::landscaper::substitution::{Entries, Entry};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::matches(&OVERWRITES, WRITES, FailurePolicy::Ignore)];

/// The definition of rule OW003.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "OW003",
        name: "substitution-without-effect",
        level: Level::Warn,
        summary: "a substitution that sets nothing, or sets the value that its source already requires",
        page: include_str!("../../../docs/rules/OW003.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let list = FieldPath::of(["overwrites"]);
    let entries = Entries::of(request);
    let decoded = entries.iter().enumerate().filter(|(at, _)| !entries.has_problem(*at));
    decoded.flat_map(|(at, entry)| of_entry(entry, &list.index(at))).collect()
}

fn of_entry(entry: &Entry, field: &FieldPath) -> Vec<Finding> {
    let substitution = field.key("substitution");
    if entry.substitution.specified().next().is_none() {
        let message = "sets nothing: the entry does not change the references that it matches";
        return vec![
            RULE.finding(substitution, message).help("set the attributes that should change, or remove the entry"),
        ];
    }
    let fixed =
        |attribute: &_| entry.source.specifies(*attribute) && entry.source.agrees(&entry.substitution, *attribute);
    let findings = entry.substitution.specified().filter(fixed).map(|attribute| {
        let message =
            "sets the value of the source: it changes nothing, and prevents later entries from setting this attribute";
        RULE.finding(substitution.key(attribute.as_str()), message)
            .found(entry.substitution.brief(attribute))
            .help("remove it")
    });
    findings.collect()
}
