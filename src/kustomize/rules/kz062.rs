//! KZ062: an object that two Flux Kustomizations render.

use crate::admission::{FieldPath, Finding, Level};
use crate::kustomize::object_id::{ObjectId, listed};
use crate::rule::RuleInfo;

/// The rule definition of KZ062.
pub(in crate::kustomize) static RULE: RuleInfo = RuleInfo {
    id: "KZ062",
    name: "object-of-two-kustomizations",
    level: Level::Warn,
    summary: "an object that another Flux Kustomization of the same source renders too",
    page: include_str!("../../../docs/rules/KZ062.md"),
};

/// Returns a finding about objects that the Kustomization `other` renders too.
pub(in crate::kustomize) fn found(shared: &[&ObjectId], other: &str, revision: &str) -> Finding {
    let message = format!(
        "in revision {revision}, Kustomization {other} renders {} too: whichever applies an object last owns it, and deletes it \
         when it no longer renders it",
        listed(shared)
    );
    let help = "render each object in one Kustomization only; if this one creates an object only when it is missing, annotate it \
                with kustomize.toolkit.fluxcd.io/ssa: IfNotPresent";
    Finding::new(RULE.id, RULE.level, FieldPath::of(["spec", "path"]), message).help(help)
}
