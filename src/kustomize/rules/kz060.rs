//! KZ060: a revision that deletes objects whose loss cannot be undone.

use crate::admission::{FieldPath, Finding, Level};
use crate::kustomize::object_id::ObjectId;
use crate::rule::RuleInfo;

/// The rule definition of KZ060.
pub(in crate::kustomize) static RULE: RuleInfo = RuleInfo {
    id: "KZ060",
    name: "deletes-protected-object",
    level: Level::Warn,
    summary: "a Flux Kustomization that no longer renders a Namespace, a CustomResourceDefinition, a volume, or another object whose \
              deletion takes data or other objects with it",
    page: include_str!("../../../docs/rules/KZ060.md"),
};

/// The protected kinds with their groups, and what their deletion takes along.
const PROTECTED: [(&str, &str, &str); 7] = [
    ("", "Namespace", "everything in the namespace"),
    ("apiextensions.k8s.io", "CustomResourceDefinition", "all objects of its kind"),
    ("", "PersistentVolumeClaim", "its data, unless the volume is retained"),
    ("", "PersistentVolume", "its data, unless it is retained"),
    ("apps", "StatefulSet", "its pods"),
    ("kustomize.toolkit.fluxcd.io", "Kustomization", "what it applied, if it prunes"),
    ("helm.toolkit.fluxcd.io", "HelmRelease", "the release, which is uninstalled"),
];

/// Returns a finding for each protected object that a revision does not render any more.
pub(in crate::kustomize) fn found(stale: &[&ObjectId], revision: &str) -> Vec<Finding> {
    let consequence = |id: &ObjectId| PROTECTED.iter().find(|(group, kind, _)| *group == id.group && *kind == id.kind);
    let protected = stale.iter().filter_map(|id| Some((id, consequence(id)?.2)));
    let finding = |(id, consequence): (&&ObjectId, &str)| {
        let message = format!(
            "revision {revision} does not render {id}, which this Kustomization applied: Flux will delete it, and with it \
             {consequence}, unless it is excluded from pruning or another Kustomization applies it first"
        );
        let help = "to keep it, annotate it in the cluster with kustomize.toolkit.fluxcd.io/prune=disabled before you change \
                    the Kustomization";
        Finding::new(RULE.id, RULE.level, FieldPath::of(["spec", "path"]), message).help(help)
    };
    protected.map(finding).collect()
}
