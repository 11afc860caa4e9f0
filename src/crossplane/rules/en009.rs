//! EN009: reports fields and patches of an environment that have no effect.

use super::{WRITTEN_COMPOSITIONS, text_findings};
use crate::admission::Level;
use crate::crossplane::composition::Topic;
use crate::rule::{Rule, RuleInfo};

/// The rule definition of EN009.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "EN009",
        name: "environment-ignored",
        level: Level::Warn,
        summary: "a patch or a field of an environment that Crossplane silently ignores",
        page: include_str!("../../../docs/rules/EN009.md"),
    },
    matchers: &WRITTEN_COMPOSITIONS,
    looks_up: &[],
    live_reads: None,
    check: |request, _| text_findings(&RULE, Topic::Ignored, request),
};
