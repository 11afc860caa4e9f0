//! The format of admission decisions in recordings, which are the files that `portcullis serve --record` writes.

#![allow(missing_docs, reason = "most fields of the format explain themselves")]

use json_patch::Patch;
use serde::{Deserialize, Serialize};

use crate::admission::{Level, Refusal, Verdict};

/// A recorded decision. It contains whether the request was allowed, the findings, the notices and the patch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Whether the request was allowed.
    pub allowed: bool,
    /// The reason for a denial that does not come from a rule, such as an unreadable request or an expired deadline.
    /// `None` if there was no such denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// The findings of the rules, except those with level `off`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// The notices of the mutators, which are messages to the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// The JSON patch of the mutators, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Patch>,
}

/// A recorded finding of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The id of the rule.
    pub rule: String,
    /// The level of the finding after the configuration was applied.
    pub level: Level,
    pub field: String,
    pub message: String,
}

impl From<&Verdict> for Answer {
    fn from(verdict: &Verdict) -> Self {
        let refusal = verdict.refusal.as_ref().map(|refusal| match refusal {
            Refusal::Unreadable(text) | Refusal::Undecided(text) => text.clone(),
        });
        let findings = verdict.findings.iter().filter(|finding| finding.level > Level::Off).map(|finding| Finding {
            rule: finding.rule.to_owned(),
            level: finding.level,
            field: finding.field.to_string(),
            message: finding.message.clone(),
        });
        Self {
            allowed: verdict.is_allowed(),
            refusal,
            findings: findings.collect(),
            notices: verdict.notices.clone(),
            patch: verdict.patch.clone(),
        }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { rule, level, field, message } = self;
        if field.is_empty() {
            return write!(f, "{level} {rule} {message}");
        }
        write!(f, "{level} {rule} {field}: {message}")
    }
}
