//! KZ063: reports an object that moves to another Flux Kustomization, and that may be deleted during the move.

use crate::admission::{FieldPath, Finding, Level};
use crate::kustomize::identity::{ObjectId, listed};
use crate::rule::RuleInfo;

/// The rule definition of KZ063.
pub(in crate::kustomize) static RULE: RuleInfo = RuleInfo {
    id: "KZ063",
    name: "moved-object-may-be-deleted",
    level: Level::Warn,
    summary: "an object that moves to another Flux Kustomization, and that is or may be deleted in between",
    page: include_str!("../../../docs/rules/KZ063.md"),
};

/// The order in which Flux applies two Kustomizations if a revision moves an object from one of them to the other. If
/// Flux always applies the object's new Kustomization first, the object is safe. In this case, callers use `None`
/// instead of an `Order`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::kustomize) enum Order<'a> {
    /// The object's new Kustomization depends on its old Kustomization. So Flux applies the old Kustomization first,
    /// which deletes the object. After that, the new Kustomization creates the object again.
    LoserFirst,
    /// Flux may apply the two Kustomizations in any order, because neither of them depends on the other.
    Any,
    /// The order is unknown, because the two Kustomizations use different sources. `dependsOn` does not help here: it
    /// does not wait for a revision of another source. The string describes the source of the new Kustomization, with
    /// revision, kind, namespace and name.
    Elsewhere(&'a str),
}

/// Returns a finding about objects that move from the Kustomization `from` to the Kustomization `to` in the revision
/// `revision`. `order` is the order in which Flux applies both Kustomizations.
pub(in crate::kustomize) fn found(
    moved: &[&ObjectId],
    (from, to): (&str, &str),
    order: Order<'_>,
    revision: &str,
) -> Finding {
    let what = listed(moved);
    let message = match order {
        Order::LoserFirst => format!(
            "revision {revision} moves {what} to Kustomization {to}, which depends on this one: Flux deletes them before {to} creates \
             them again"
        ),
        Order::Any => format!(
            "revision {revision} moves {what} to Kustomization {to}, and neither waits for the other: if this one is first, Flux \
             deletes them, and {to} creates them again"
        ),
        Order::Elsewhere(source) => format!(
            "revision {revision} moves {what} to Kustomization {to}, which renders them in {source}: if this one applied them last, \
             Flux deletes them, and {to} creates them again"
        ),
    };
    let help = match order {
        Order::LoserFirst => format!(
            "reverse the dependency for this revision, or annotate the objects in the cluster with \
             kustomize.toolkit.fluxcd.io/prune=disabled until {to} has applied them"
        ),
        Order::Any => {
            format!("add {to} to spec.dependsOn of {from}, so that {from} waits until {to} has applied the objects")
        }
        Order::Elsewhere(_) => format!(
            "annotate the objects in the cluster with kustomize.toolkit.fluxcd.io/prune=disabled until {to} has applied them; \
             dependsOn does not wait for a revision of another source"
        ),
    };
    Finding::new(RULE.id, RULE.level, FieldPath::of(["spec", "path"]), message).help(help)
}
