//! EN012: unknown fields in an environment or in the input of a function.

use super::{WRITTEN_COMPOSITIONS, text_findings};
use crate::admission::Level;
use crate::crossplane::composition::Topic;
use crate::rule::{Rule, RuleInfo};

/// The rule definition of EN012.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "EN012",
        name: "environment-unknown-field",
        level: Level::Warn,
        summary: "an unknown field in an environment or in the input of a function",
        page: include_str!("../../../docs/rules/EN012.md"),
    },
    matchers: &WRITTEN_COMPOSITIONS,
    looks_up: &[],
    live_reads: None,
    check: |request, _| text_findings(&RULE, Topic::Unknown, request),
};
