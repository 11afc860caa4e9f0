//! Checks deletions of objects by Argo CD. An annotation of the object, the tracking id, names the Application to which
//! the object belongs.
//!
//! Source: `util/argo/resource_tracking.go` and `controller/state.go` of Argo CD. The status of the Application lists
//! the objects that Argo CD deletes. So Portcullis does not need to build the manifests of the Application.

use std::sync::Arc;

use serde_json::Value;
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

use super::super::rules::gd001::{self, Owner};
use super::super::{APPROVAL_ANNOTATION, limits};
use super::Deletion;
use crate::admission::json::Lookup as _;
use crate::admission::{Finding, Metadata};
use crate::catalog::{Kind, Reference, Scope, Storage, Stored};
use crate::kustomize::identity::ObjectId;

/// The annotation with the tracking id of Argo CD. The tracking id names the Application that owns the object.
const TRACKING_ID: &str = "argocd.argoproj.io/tracking-id";
/// The namespace in which Argo CD is installed by default. A tracking id may omit the namespace of the Application. The
/// Application is then in the namespace of the service account that deletes the object. This constant is used if a user
/// that is not a service account deletes the object.
const CONTROL_NAMESPACE: &str = "argocd";
/// Maximum time between the approval of deletions and the start of the Argo CD operation that deletes the objects. If
/// the Application itself is being deleted, its `deletionTimestamp` counts as the start of the operation. The time must
/// be long enough for a retry, because Argo CD starts a new operation after a denial.
const APPROVAL: Duration = Duration::HOUR;

/// The kind Application of Argo CD. Applications are not cached. A decision that needs an Application reads it from the
/// API server.
pub(super) static APPLICATIONS: Kind = Kind {
    group: "argoproj.io",
    version: "v1alpha1",
    kind: "Application",
    plural: "applications",
    scope: Scope::Namespaced,
    indexes: &[],
    storage: Storage::Live(&[
        &["metadata", "deletionTimestamp"],
        &["metadata", "annotations", APPROVAL_ANNOTATION],
        &["status", "operationState", "startedAt"],
        &["status", "resources"],
    ]),
};

/// Returns a reference to the Application for which Argo CD deletes the object. The caller must read the Application
/// from the API server. The result is empty if Argo CD does not delete the object.
pub(super) fn live_reads(deletion: &Deletion<'_>) -> Vec<Reference> {
    application(deletion).into_iter().collect()
}

/// Reports a deletion by Argo CD if the kind of the object is protected, or if Argo CD deletes more objects of the
/// Application than the limit allows. If the Application has an approval for its deletions, returns only a finding that
/// records the approved deletion in the audit log.
pub(super) fn findings(deletion: &Deletion<'_>) -> Vec<Finding> {
    let found = || {
        let reference = application(deletion)?;
        let stored = deletion.view.find(&APPLICATIONS, &reference.namespace, &reference.name)?;
        of_application(deletion, &stored)
    };
    found().into_iter().collect()
}

/// Returns a reference to the Argo CD Application to which the deleted object belongs. The object's tracking id, an
/// annotation of Argo CD, contains the name of this Application. Returns `None` in these cases:
///
/// * The object has no tracking id.
/// * The tracking id was copied from another object.
/// * The request does not come from one of the configured controllers.
fn application(deletion: &Deletion<'_>) -> Option<Reference> {
    let user = &*deletion.request.user.name;
    let tracking_id = Metadata::of(deletion.request.old_object()).annotation(TRACKING_ID)?;
    let (application, kind, place) = parts(tracking_id)?;
    let ObjectId { group, kind: own, namespace, name } = &deletion.id;
    let is_own = kind == format!("{group}/{own}")
        && place.split_once('/').is_some_and(|(of, it)| it == name && (namespace.is_empty() || of == namespace));
    if !is_own || !deletion.guard.has(user) {
        return None;
    }
    let of_user = || user.strip_prefix("system:serviceaccount:").and_then(|account| account.split(':').next());
    let control = || of_user().unwrap_or(CONTROL_NAMESPACE);
    let (namespace, name) = application.split_once('_').unwrap_or_else(|| (control(), application));
    Some(Reference::new(&APPLICATIONS, namespace, name))
}

/// Splits a tracking id, such as `shop:apps/Deployment:shop/web`, at its first two colons. The parts are the
/// Application, `GROUP/KIND`, and `NAMESPACE/NAME`. `NAME` may contain colons. `None` if the id has fewer than two
/// colons.
fn parts(tracking_id: &str) -> Option<(&str, &str, &str)> {
    let (application, rest) = tracking_id.split_once(':')?;
    let (kind, place) = rest.split_once(':')?;
    Some((application, kind, place))
}

fn of_application(deletion: &Deletion<'_>, stored: &Arc<Stored>) -> Option<Finding> {
    let application = stored.value();
    let is_deleted = Metadata::of(application).is_deleting();
    let owner = owner(stored, is_deleted);
    if is_approved(application) {
        return Some(gd001::approved(&deletion.id, &owner));
    }
    if deletion.limits.protects(&deletion.id) {
        return Some(gd001::protected(&deletion.id, limits::takes_along(&deletion.id), &owner));
    }
    let resources = application.at(&["status", "resources"]).and_then(Value::as_array);
    let all: Vec<_> = resources.into_iter().flatten().collect();
    let goes = |resource: &&&Value| is_deleted || resource.get("requiresPruning") == Some(&Value::Bool(true));
    let deleted: Vec<_> = all.iter().filter(goes).map(|resource| identity(resource)).collect();
    let deleted: Vec<_> = deleted.iter().collect();
    let limit = deletion.limits.max_count;
    (deleted.len() > limit).then(|| gd001::many(&deleted, all.len(), limit, &owner))
}

fn identity(resource: &Value) -> ObjectId {
    let text = |key: &str| resource.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    ObjectId { group: text("group"), kind: text("kind"), namespace: text("namespace"), name: text("name") }
}

fn owner(stored: &Stored, is_deleted: bool) -> Owner {
    let (namespace, name) = (stored.namespace().to_owned(), stored.name().to_owned());
    let of = if is_deleted { "the deletion of Application" } else { "the operation of Application" };
    let what = format!("{of} {namespace}/{name}");
    Owner { what, namespace, resource: "applications.argoproj.io", name, approval: "$(date -u +%FT%TZ)".to_owned() }
}

/// Returns whether the user has approved the deletions by the last operation of an Application. The annotation
/// `portcullis.dev/approve-deletions` of the Application contains the time of the approval. The approval is valid if
/// this time is after the start of the operation, or at most [`APPROVAL`] before it.
///
/// If the Application itself is being deleted, its `deletionTimestamp` counts as the start of the operation.
fn is_approved(application: &Value) -> bool {
    let metadata = Metadata::of(application);
    let time = |text: &str| OffsetDateTime::parse(text, &Rfc3339).ok();
    let deletion = application.at(&["metadata", "deletionTimestamp"]);
    let begin = deletion.or_else(|| application.at(&["status", "operationState", "startedAt"]));
    let approved = metadata.annotation(APPROVAL_ANNOTATION).and_then(time);
    let begin = begin.and_then(Value::as_str).and_then(time);
    approved.zip(begin).is_some_and(|(approved, begin)| begin - approved <= APPROVAL)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_tracking_ids() {
        assert_eq!(parts("shop:apps/Deployment:shop/web"), Some(("shop", "apps/Deployment", "shop/web")));
        assert_eq!(parts("a_b:/Secret:x/y"), Some(("a_b", "/Secret", "x/y")));
        assert_eq!(parts("a:rbac.x/ClusterRole:x/system:a"), Some(("a", "rbac.x/ClusterRole", "x/system:a")));
        assert_eq!(parts("shop"), None);
    }

    #[test]
    fn an_approval_is_bound_to_the_time_of_the_operation() {
        let approved = |time: &str, begin: Value| {
            let metadata = json!({"annotations": {APPROVAL_ANNOTATION: time}});
            is_approved(&json!({"metadata": metadata, "status": {"operationState": {"startedAt": begin}}}))
        };
        let begin = || json!("2026-11-23T12:00:00Z");
        let times = ["2026-11-23T12:00:01Z", "2026-11-23T11:00:00Z", "2026-11-23T12:59:00+02:00", "now", ""];
        assert_eq!(times.map(|time| approved(time, begin())), [true, true, false, false, false]);
        assert!(!approved("2026-11-23T12:00:01Z", Value::Null));
    }
}
