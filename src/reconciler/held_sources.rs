//! A controller that makes a rejected revision of a Flux source available as soon as a user approves its deletions.
//!
//! The admission webhook can reject a revision because of the objects that it would delete. It then keeps the previous
//! revision in the status of the source. Users approve the deletions with an annotation on the Kustomization. But the
//! webhook checks the revision again only when source-controller writes the status of the source, which is usually at
//! the next interval.
//!
//! To avoid this delay, the controller sets the annotation that `flux reconcile` sets. source-controller then writes
//! the status at once. The controller writes nothing before the approval.

use std::sync::Arc;

use futures::future::BoxFuture;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{Controller, Failure, Next, Permission, Tools};
use crate::catalog::{Catalog, Change, Kind, Reference, Stored, cluster};
use crate::kustomize::delivery::deployed;

/// Field manager of this controller's writes, as in `metadata.managedFields`.
const MANAGER: &str = "portcullis-held-sources";

/// A controller for Flux sources with a revision that the admission webhook rejected, because Flux would delete
/// objects. As soon as a user approves the deletions, the controller makes Flux reconcile the source. Without the
/// controller, the user waits until the next interval of the source.
pub(super) struct HeldSources;

impl Controller for HeldSources {
    fn name(&self) -> &'static str {
        "held-sources"
    }

    fn family(&self) -> Option<&'static str> {
        Some("GD")
    }

    fn summary(&self) -> &'static str {
        "makes Flux reconcile a source with a withheld revision as soon as the deletions of the revision are approved"
    }

    fn watches(&self) -> &'static [&'static Kind] {
        &deployed::ON_REQUEST
    }

    fn reads(&self) -> Vec<&'static Kind> {
        deployed::ON_REQUEST.into_iter().filter(|kind| is_requested(kind)).collect()
    }

    fn permissions(&self) -> &'static [Permission] {
        &[Permission {
            group: deployed::SOURCE_GROUP,
            resources: &["buckets", "gitrepositories", "ocirepositories"],
            names: &[],
            verbs: &["patch"],
        }]
    }

    /// Returns the Flux source to reconcile after a change, if any:
    /// - a changed source, if its status has a new message about a revision that the admission webhook rejected
    /// - the source of a changed Kustomization, if the annotation that approves deletions changed
    fn affected(&self, change: &Change, catalog: &Catalog) -> Vec<Reference> {
        let Some(now) = &change.now else { return Vec::new() };
        if deployed::is_source(change.kind) {
            let withheld = |stored: &Arc<Stored>| deployed::withheld(stored.value()).map(str::to_owned);
            let is_new = change.before.as_ref().and_then(withheld) != withheld(now);
            return if is_new { vec![change.reference()] } else { Vec::new() };
        }
        let approval = |stored: &Arc<Stored>| deployed::approval(stored.value()).map(str::to_owned);
        if change.before.as_ref().and_then(approval) == approval(now) {
            return Vec::new();
        }
        let source = deployed::source_of(catalog, now).filter(|(kind, _)| is_requested(kind));
        source.map(|(kind, source)| Reference::new(kind, source.namespace(), source.name())).into_iter().collect()
    }

    fn reconcile<'a>(&'a self, object: &'a Reference, tools: &'a Tools) -> BoxFuture<'a, Result<Next, Failure>> {
        Box::pin(async move {
            let stored = tools.catalog.find(object.kind, &object.namespace, &object.name);
            if !is_requested(object.kind) || !stored.is_some_and(|source| is_approved(object, &source, &tools.catalog))
            {
                return Ok(Next::Done);
            }
            request(object, tools).await
        })
    }
}

/// Returns whether objects of a kind are Flux sources that source-controller reconciles immediately when they get the
/// annotation that `flux reconcile` sets.
fn is_requested(kind: &Kind) -> bool {
    deployed::is_source(kind) && deployed::ON_REQUEST.iter().any(|one| std::ptr::eq(*one, kind))
}

/// Returns whether a user has approved the deletions that made the admission webhook reject a revision of the Flux
/// source `object`. The approval is an annotation on a Kustomization that uses the source.
fn is_approved(object: &Reference, source: &Stored, catalog: &Catalog) -> bool {
    let Some(message) = deployed::withheld(source.value()) else { return false };
    let users = deployed::users(catalog, object.kind, source);
    let mut stored = users.iter().filter_map(|user| catalog.find(user.kind, &user.namespace, &user.name));
    stored.any(|user| deployed::is_awaited_approval(message, user.value()))
}

/// Sets the annotation that makes source-controller reconcile the Flux source `object` at once. First reads the source
/// again, and does nothing if the reconciliation is no longer needed.
async fn request(object: &Reference, tools: &Tools) -> Result<Next, Failure> {
    let found = cluster::read(&tools.client, object).await.map_err(Failure::api("reading it"))?;
    let source = found.map(Stored::new).filter(|source| is_approved(object, source, &tools.catalog));
    let Some(source) = source else { return Ok(Next::Done) };
    let now = OffsetDateTime::now_utc().format(&Rfc3339).map_err(|error| Failure::Unknown(error.to_string()))?;
    let version = source.value().pointer("/metadata/resourceVersion");
    let patch = json!({"metadata": {"resourceVersion": version, "annotations": {deployed::REQUESTED: now}}});
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    let patched = cluster::api(&tools.client, object).patch(&object.name, &params, &Patch::Merge(&patch)).await;
    match patched {
        // The source was deleted in the meantime.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Next::Done),
        patched => patched.map(|_| Next::Done).map_err(Failure::api("requesting a reconciliation")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn source(message: &str) -> Value {
        json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
               "metadata": {"name": "fleet", "namespace": "flux-system"},
               "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "RevisionWithheld", "message": message}]}})
    }

    fn kustomization(approval: &str) -> Value {
        json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
               "metadata": {"name": "apps", "namespace": "team-a", "annotations": {"portcullis.dev/approve-deletions": approval}},
               "spec": {"path": "apps", "sourceRef": {"kind": "GitRepository", "name": "fleet", "namespace": "flux-system"}}})
    }

    const MESSAGE: &str = "revision main@sha1:12 is withheld by Portcullis:\nGD002 status.artifact: …\n  help: if this is intended, approve \
                           it: kubectl -n team-a annotate kustomization apps --overwrite \
                           portcullis.dev/approve-deletions=main@sha1:12";

    fn catalog(message: &str, approval: &str) -> Catalog {
        Catalog::of(deployed::ON_REQUEST, vec![source(message), kustomization(approval)])
    }

    #[test]
    fn requests_only_what_the_message_asks_to_approve() {
        let is_requested = |message: &str, approval: &str| {
            let (catalog, object) =
                (catalog(message, approval), Reference::new(deployed::ON_REQUEST[1], "flux-system", "fleet"));
            let source = catalog.find(object.kind, &object.namespace, &object.name).unwrap();
            is_approved(&object, &source, &catalog)
        };
        assert!(is_requested(MESSAGE, "main@sha1:12"));
        assert!(!is_requested(MESSAGE, "main@sha1:1"), "the beginning of the revision");
        assert!(!is_requested(MESSAGE, "") && !is_requested(MESSAGE, "main@sha1:13"));
        assert!(!is_requested("KZ001 …", "main@sha1:12"), "it is withheld for another reason");
    }

    #[test]
    fn an_approval_affects_the_source() {
        let catalog = catalog(MESSAGE, "main@sha1:12");
        let stored = |kind, object: Value| Some(Arc::new(Stored::projected(kind, &object.to_string()).unwrap()));
        let affected = |kind: &'static Kind, before: Value, now: Value| {
            let change = Change { kind, before: stored(kind, before), now: stored(kind, now) };
            HeldSources.affected(&change, &catalog).into_iter().map(|object| object.name).collect::<Vec<_>>()
        };
        let [users, sources] = [deployed::ON_REQUEST[0], deployed::ON_REQUEST[1]];
        assert_eq!(affected(users, kustomization(""), kustomization("main@sha1:12")), ["fleet"]);
        assert_eq!(affected(users, kustomization("main@sha1:12"), kustomization("main@sha1:12")), [""; 0]);
        assert_eq!(affected(sources, source(""), source(MESSAGE)), ["fleet"]);
        assert_eq!(affected(sources, source(MESSAGE), source(MESSAGE)), [""; 0]);
    }
}
