//! EN001: missing fields and fields of the wrong type in an environment.

use super::{WRITTEN_COMPOSITIONS, text_findings};
use crate::admission::Level;
use crate::crossplane::composition::Topic;
use crate::rule::{Rule, RuleInfo};

/// The rule definition of EN001.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "EN001",
        name: "environment-structure",
        level: Level::Deny,
        summary: "an environment or patch with a missing field or a field of the wrong type",
        page: include_str!("../../../docs/rules/EN001.md"),
    },
    matchers: &WRITTEN_COMPOSITIONS,
    looks_up: &[],
    live_reads: None,
    check: |request, _| text_findings(&RULE, Topic::Structure, request),
};
