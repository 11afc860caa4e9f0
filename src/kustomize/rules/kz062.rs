//! KZ062: an object that two Flux Kustomizations render.

use crate::admission::{FieldPath, Finding, Level};
use crate::kustomize::identity::{ObjectId, listed};
use crate::rule::RuleInfo;

/// The rule definition of KZ062.
pub(in crate::kustomize) static RULE: RuleInfo = RuleInfo {
    id: "KZ062",
    name: "object-of-two-kustomizations",
    level: Level::Warn,
    summary: "an object that another Flux Kustomization renders too",
    page: include_str!("../../../docs/rules/KZ062.md"),
};

/// Returns a finding about objects that another Kustomization, `other`, also renders. If `other` uses a different
/// source, `elsewhere` describes the revision and the source of `other`.
pub(in crate::kustomize) fn found(
    shared: &[&ObjectId],
    (other, elsewhere): (&str, Option<&str>),
    revision: &str,
) -> Finding {
    let what = listed(shared);
    let both = match elsewhere {
        None => format!("in revision {revision}, Kustomization {other} renders {what} too"),
        Some(elsewhere) => format!("revision {revision} renders {what}, and Kustomization {other} too, in {elsewhere}"),
    };
    let message = format!(
        "{both}: the Kustomization that applies an object last owns it, and deletes it when it no longer renders it"
    );
    let help = "render each object in one Kustomization only; if this one creates an object only when it is missing, annotate it \
                with kustomize.toolkit.fluxcd.io/ssa: IfNotPresent";
    Finding::new(RULE.id, RULE.level, FieldPath::of(["spec", "path"]), message).help(help)
}
