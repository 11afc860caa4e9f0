//! KZ060: a revision that deletes an object of a protected kind, such as a Namespace or a volume.

use crate::admission::{FieldPath, Finding, Level};
use crate::kustomize::identity::ObjectId;
use crate::rule::RuleInfo;

/// The rule definition of KZ060.
pub(in crate::kustomize) static RULE: RuleInfo = RuleInfo {
    id: "KZ060",
    name: "deletes-protected-object",
    level: Level::Warn,
    summary: "a Flux Kustomization that no longer renders a Namespace, a CustomResourceDefinition, a volume, or another object whose \
              deletion also deletes data or other objects",
    page: include_str!("../../../docs/rules/KZ060.md"),
};

/// Returns a finding about a protected object that a revision no longer renders. `takes` describes what is deleted
/// together with the object, such as `everything in the namespace`.
pub(in crate::kustomize) fn found(id: &ObjectId, takes: Option<&str>, revision: &str) -> Finding {
    let along = takes.map(|takes| format!(", and with it {takes},")).unwrap_or_default();
    let message = format!(
        "revision {revision} does not render {id}, which this Kustomization applied: Flux will delete it{along} unless it is \
         excluded from pruning or another Kustomization applies it first"
    );
    let help = "to keep it, annotate it in the cluster with kustomize.toolkit.fluxcd.io/prune=disabled before you change \
                the Kustomization";
    Finding::new(RULE.id, RULE.level, FieldPath::of(["spec", "path"]), message).help(help)
}
