//! KZ061: a revision that deletes most of what a Kustomization applied.

use crate::admission::{FieldPath, Finding, Level};
use crate::kustomize::object_id::ObjectId;
use crate::rule::RuleInfo;

/// The rule definition of KZ061.
pub(in crate::kustomize) static RULE: RuleInfo = RuleInfo {
    id: "KZ061",
    name: "deletes-many-objects",
    level: Level::Warn,
    summary: "a Flux Kustomization that no longer renders most of the objects that it applied",
    page: include_str!("../../../docs/rules/KZ061.md"),
};

/// Deletions below this number are an ordinary change, unless nothing is left.
const MIN_REPORTED: usize = 10;
/// Maximum number of objects that a message names.
const MAX_NAMED: usize = 3;

/// Returns a finding if all objects of an inventory go, or more than half of them and at least [`MIN_REPORTED`].
pub(in crate::kustomize) fn found(stale: &[&ObjectId], applied: usize, revision: &str) -> Option<Finding> {
    let count = stale.len();
    let is_most = count >= MIN_REPORTED && count * 2 > applied;
    if count == 0 || count < applied && !is_most {
        return None;
    }
    let mut names: Vec<_> = stale.iter().take(MAX_NAMED).map(ToString::to_string).collect();
    if count > MAX_NAMED {
        names.push(format!("{} more", count - MAX_NAMED));
    }
    let message = format!(
        "revision {revision} does not render {count} of the {applied} objects that this Kustomization applied: Flux will delete \
         those that are not excluded from pruning and that no other Kustomization applies first: {}",
        names.join(", ")
    );
    let help =
        "if the objects move to another Kustomization, apply that one first; to keep them, set spec.prune to false";
    Some(Finding::new(RULE.id, RULE.level, FieldPath::of(["spec", "path"]), message).help(help))
}
