//! KZ031: a build that fails because a generator, transformer or validator cannot process the objects.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::rule::RuleInfo;

/// The rule definition of KZ031.
pub(super) static RULE: RuleInfo = RuleInfo {
    id: "KZ031",
    name: "build-fails",
    level: Level::Deny,
    summary: "a generator, transformer or validator that fails on its input objects",
    page: include_str!("../../../docs/rules/KZ031.md"),
};

/// Returns a finding about a build step that fails. `site` is the position of the entry or object that causes the
/// failure, and `message` describes the failure.
pub(in crate::kustomize) fn found(site: Site, message: &str) -> TreeFinding {
    RULE.at(site, message).help("correct the entry, or the object that it fails on")
}
