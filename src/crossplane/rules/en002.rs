//! EN002: invalid field paths.

use super::{WRITTEN_COMPOSITIONS, text_findings};
use crate::admission::Level;
use crate::crossplane::composition::Topic;
use crate::rule::{Rule, RuleInfo};

/// The rule definition of EN002.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "EN002",
        name: "environment-field-path",
        level: Level::Deny,
        summary: "a field path that cannot be parsed, writes beyond index 1024, or has a wildcard where none is expanded",
        page: include_str!("../../../docs/rules/EN002.md"),
    },
    matchers: &WRITTEN_COMPOSITIONS,
    looks_up: &[],
    live_reads: None,
    check: |request, _| text_findings(&RULE, Topic::Path, request),
};
