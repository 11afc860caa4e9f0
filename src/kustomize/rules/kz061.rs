//! KZ061: a revision that deletes most of the objects that a Flux Kustomization applied.

use crate::admission::{FieldPath, Finding, Level};
use crate::kustomize::identity::{ObjectId, listed};
use crate::rule::RuleInfo;

/// The rule definition of KZ061.
pub(in crate::kustomize) static RULE: RuleInfo = RuleInfo {
    id: "KZ061",
    name: "deletes-many-objects",
    level: Level::Warn,
    summary: "a Flux Kustomization that no longer renders most of the objects that it applied",
    page: include_str!("../../../docs/rules/KZ061.md"),
};

/// Returns a finding about the objects `stale`, which Flux will delete. `applied` is the number of all objects that the
/// Kustomization applied.
pub(in crate::kustomize) fn found(stale: &[&ObjectId], applied: usize, revision: &str) -> Finding {
    let message = format!(
        "revision {revision} does not render {} of the {applied} objects that this Kustomization applied: Flux will delete \
         those that are not excluded from pruning and that no other Kustomization applies first: {}",
        stale.len(),
        listed(stale)
    );
    let help =
        "if the objects move to another Kustomization, apply that one first; to keep them, set spec.prune to false";
    Finding::new(RULE.id, RULE.level, FieldPath::of(["spec", "path"]), message).help(help)
}
