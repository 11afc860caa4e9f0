//! KZ040: a part of a kustomize tree whose build result is unknown.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::rule::RuleInfo;

/// The id of the rule about parts of a kustomize tree whose build result is unknown.
pub(in crate::kustomize) const ID: &str = "KZ040";

/// The rule definition of KZ040.
pub(super) static RULE: RuleInfo = RuleInfo {
    id: ID,
    name: "not-known",
    level: Level::Audit,
    summary: "a part of a tree that cannot be checked without fetching, rendering or running it",
    page: include_str!("../../../docs/rules/KZ040.md"),
};

/// Returns the finding for a part of a kustomize build whose result Portcullis cannot determine. `reason` says why, for
/// example because a remote base is not fetched. It becomes the message of the finding.
pub(in crate::kustomize) fn found(site: Site, reason: &str) -> TreeFinding {
    RULE.at(site, reason).harmless().help("run kustomize build to see the actual result")
}
