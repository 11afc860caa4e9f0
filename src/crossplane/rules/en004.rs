//! EN004: invalid label keys and values in selectors.

use super::{WRITTEN_COMPOSITIONS, text_findings};
use crate::admission::Level;
use crate::crossplane::composition::Topic;
use crate::rule::{Rule, RuleInfo};

/// The rule definition of EN004.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "EN004",
        name: "environment-label",
        level: Level::Deny,
        summary: "a selector with a label key or value that no object can have",
        page: include_str!("../../../docs/rules/EN004.md"),
    },
    matchers: &WRITTEN_COMPOSITIONS,
    looks_up: &[],
    live_reads: None,
    check: |request, _| text_findings(&RULE, Topic::Label, request),
};
