//! Detects whether Flux may build a Kustomization from a newer artifact than the one that Portcullis checks. If so,
//! errors in the checked artifact cause only warnings, because the newer artifact may fix them.
//!
//! A denial could prevent the fix. For example, the checked artifact contains an error, and one commit changes both the
//! Kustomization and its Flux source. The source then points at a revision without the error. kustomize-controller
//! dry-runs all objects before it applies any of them. If Portcullis denies the Kustomization, neither change is
//! applied, and the source keeps the artifact with the error.

use serde_json::Value;

use super::source::EXTERNAL_ARTIFACTS;
use crate::admission::Metadata;
use crate::admission::json::Lookup as _;

/// The annotation that requests an immediate reconciliation by source-controller. `flux reconcile` and webhook
/// receivers set it.
pub const REQUESTED: &str = "reconcile.fluxcd.io/requestedAt";
/// The labels with the namespace and name of the Flux Kustomization that applies an object.
const OWNER: [&str; 2] = ["kustomize.toolkit.fluxcd.io/namespace", "kustomize.toolkit.fluxcd.io/name"];

/// Returns the reason why Flux may build the Kustomization `object` from another artifact than the one that is now in
/// the status of `source`. `None` if there is no such reason.
pub(super) fn reason(source: &Value, object: &Value) -> Option<&'static str> {
    if !is_observed(source) {
        return Some("the source has changed since its artifact was made");
    }
    if is_requested(source) {
        return Some("a reconciliation of the source was requested");
    }
    if is_in_progress(source) {
        return Some("the source is not ready, so its artifact may be an old one");
    }
    shares_apply(source, object).then_some("the source may be changed by the same apply")
}

/// Returns whether a Flux Kustomization applies `object`. Flux adds a label with the name of the Kustomization to each
/// object that it applies.
pub(super) fn is_applied_by_flux(object: &Value) -> bool {
    owner(object).is_some()
}

fn is_observed(source: &Value) -> bool {
    let observed = source.at(&["status", "observedGeneration"]).and_then(Value::as_i64);
    let generation = Metadata::of(source).generation();
    // Other controllers write ExternalArtifacts, and need not set the observed generation.
    let says_nothing = observed.is_none() && source.get("kind").is_some_and(|kind| kind == EXTERNAL_ARTIFACTS.kind);
    says_nothing || generation.is_none() || generation == observed
}

fn is_requested(source: &Value) -> bool {
    let asked = Metadata::of(source).annotation(REQUESTED);
    let handled = source.at(&["status", "lastHandledReconcileAt"]).and_then(Value::as_str);
    asked.is_some_and(|asked| Some(asked) != handled)
}

fn is_in_progress(source: &Value) -> bool {
    let conditions = source.at(&["status", "conditions"]).and_then(Value::as_array).into_iter().flatten();
    let mut says =
        conditions.filter_map(|condition| Some((condition.get("type")?.as_str()?, condition.get("status")?)));
    says.any(|(kind, status)| match kind {
        "Ready" => status != "True",
        "Reconciling" | "ArtifactOutdated" => status == "True",
        _ => false,
    })
}

/// Returns whether the Flux Kustomization that applies `object` may also apply `source`. Flux labels each object that
/// it applies with the namespace and name of the Kustomization. Returns `true` if `object` has these labels, and
/// `source` has the same labels or none. A source has none before Flux applies it for the first time.
fn shares_apply(source: &Value, object: &Value) -> bool {
    owner(object).is_some_and(|own| owner(source).is_none_or(|other| other == own))
}

fn owner(object: &Value) -> Option<[&str; 2]> {
    let metadata = Metadata::of(object);
    let [namespace, name] = OWNER.map(|label| metadata.label(label).unwrap_or_default());
    (!name.is_empty()).then_some([namespace, name])
}
