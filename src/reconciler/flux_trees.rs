//! A controller that checks new revisions for Flux Kustomizations, and publishes Events about problems. It checks a
//! revision as soon as it appears in the status of the Flux source, usually before kustomize-controller builds it.
//!
//! The controller reports these problems:
//!
//! - The kustomize tree of a Kustomization cannot be built. The Event contains the expected error.
//! - A revision deletes more objects than the configured limits allow, moves objects, or contains objects that another
//!   Kustomization also applies.
//! - The admission webhook has rejected a revision. The status of the source then still contains the previous revision.
//!
//! The admission webhook cannot report these problems to users of Kustomizations. A new revision causes no admission
//! request for a Kustomization, and by default the webhook denies no revision.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use serde_json::Value;

use super::changed_trees::ChangedTrees;
use super::events::RIGHT;
use super::flux_plans::{self, Judging, PlanSettings};
use super::{Controller, Failure, Next, Permission, Severity, Tools};
use crate::catalog::{Catalog, Change, Kind, Reference, Stored};
use crate::kustomize::delivery::{Artifact, Judge, Judged, Outcome, Root, deployed};

/// The name of the controller in metrics and logs.
const NAME: &str = "flux-trees";
/// Timeout for fetching and checking a kustomize tree, which usually takes seconds.
const TIMEOUT: Duration = Duration::from_secs(40);
/// Interval for retrying a kustomize tree that could not be fetched or checked.
const RETRY_INTERVAL: Duration = Duration::from_secs(120);
/// Maximum number of objects for which the controller remembers the last Event message. A cluster usually has fewer
/// Kustomizations. If the limit is reached, all messages are forgotten, and the controller may publish the same Events
/// again.
const MAX_REPORTED: usize = 20_000;

/// The reason of Events about a risky revision. Such a revision deletes or moves objects, or contains objects that
/// another Flux Kustomization also applies.
const RISKY: &str = "RiskyRevision";

/// A controller that publishes Events about problems of new revisions for Flux Kustomizations, such as broken kustomize
/// trees.
pub(super) struct FluxTrees {
    /// The service that fetches, builds and checks kustomize trees. `None` if the controller is created only to list
    /// the permissions that it needs.
    pub(super) trees: Option<Arc<dyn Judge>>,
    /// Hosts from which artifacts may be fetched, in addition to the hosts of Flux.
    pub(super) hosts: Vec<String>,
    /// The settings for findings about objects that a new revision deletes, moves or shares with other Kustomizations.
    /// They determine which of these findings are reported.
    pub(super) plans: PlanSettings,
    /// The message of the last Event on each object, so that the same message is published only once.
    pub(super) reported: Mutex<HashMap<Reference, String>>,
    /// Kustomizations for which the reported problem has changed or is solved. The controller `audit` takes them from
    /// here, and updates their policy reports.
    pub(super) changed: Arc<ChangedTrees>,
}

impl Controller for FluxTrees {
    fn name(&self) -> &'static str {
        NAME
    }

    fn family(&self) -> Option<&'static str> {
        Some("KZ")
    }

    fn summary(&self) -> &'static str {
        "publishes Events on Flux Kustomizations whose trees are broken in a new revision, or that will delete, move or share objects"
    }

    fn watches(&self) -> &'static [&'static Kind] {
        &deployed::KINDS
    }

    /// Returns the kind Kustomization of Flux. The controller reads Kustomizations from the API server, because the
    /// catalog does not contain their inventories.
    fn reads(&self) -> Vec<&'static Kind> {
        vec![deployed::KINDS[0]]
    }

    fn permissions(&self) -> &'static [Permission] {
        &[RIGHT]
    }

    /// Returns the objects to reconcile after a change:
    /// - If the spec of a Kustomization changed: the Kustomization.
    /// - If a Flux source has a new artifact, or a new message about a rejected revision: the source, and all
    ///   Kustomizations that use it.
    ///
    /// The admission webhook writes such a message into the status of the source when it rejects a revision.
    fn affected(&self, change: &Change, catalog: &Catalog) -> Vec<Reference> {
        if !deployed::is_source(change.kind) {
            let spec = |stored: &Arc<Stored>| stored.value().get("spec").cloned();
            let is_same = change.before.as_ref().map(spec) == change.now.as_ref().map(spec);
            return if is_same { Vec::new() } else { vec![change.reference()] };
        }
        let says = |stored: &Arc<Stored>| {
            let withheld = deployed::withheld(stored.value()).map(str::to_owned);
            (Artifact::of(stored.value()).map(|artifact| artifact.digest), withheld)
        };
        match &change.now {
            Some(now) if change.before.as_ref().map(says) != Some(says(now)) => {
                let users = deployed::users(catalog, change.kind, now);
                users.into_iter().chain([change.reference()]).collect()
            }
            _ => Vec::new(),
        }
    }

    fn reconcile<'a>(&'a self, object: &'a Reference, tools: &'a Tools) -> BoxFuture<'a, Result<Next, Failure>> {
        Box::pin(async move {
            let Some(stored) = tools.catalog.find(object.kind, &object.namespace, &object.name) else {
                self.forget(object);
                return Ok(Next::Done);
            };
            if deployed::is_source(object.kind) {
                self.source(object, &stored, tools).await;
                return Ok(Next::Done);
            }
            match deployed::root(&tools.catalog, &stored) {
                Some(root) => self.kustomization(object, &stored, &root, tools).await,
                None => {
                    self.forget(object);
                    Ok(Next::Done)
                }
            }
        })
    }
}

impl FluxTrees {
    async fn kustomization(
        &self,
        object: &Reference,
        stored: &Stored,
        root: &Root,
        tools: &Tools,
    ) -> Result<Next, Failure> {
        let Some(trees) = &self.trees else { return Ok(Next::Done) };
        match trees.judge(root, &self.hosts, Instant::now() + TIMEOUT).await {
            Outcome::Judged(judged) => match note(root, &judged) {
                Some(note) => self.report(object, stored.value(), "BrokenRevision", &note, tools).await,
                None => self.plan(object, (root, &judged), &**trees, tools).await?,
            },
            Outcome::Unknown(why) => {
                tracing::info!(namespace = object.namespace, name = object.name, why, "the tree was not checked");
                return Ok(Next::Again(RETRY_INTERVAL));
            }
            Outcome::Unasked => {}
        }
        Ok(Next::Done)
    }

    /// Publishes Events if a new revision for the Flux Kustomization `object` is risky. Such a revision deletes or
    /// moves objects, or contains objects that another Kustomization also applies. One Event refers to the
    /// Kustomization, and one refers to its source.
    async fn plan(
        &self,
        object: &Reference,
        (root, judged): (&Root, &Judged),
        trees: &dyn Judge,
        tools: &Tools,
    ) -> Result<(), Failure> {
        let judging = Judging { trees, hosts: &self.hosts, last: Instant::now() + TIMEOUT };
        let Some((applied, note)) = flux_plans::note(object, (root, judged), &judging, &self.plans, tools).await?
        else {
            self.forget(object);
            return Ok(());
        };
        if !self.remember(object, &note) {
            return Ok(());
        }
        tracing::warn!(namespace = object.namespace, name = object.name, note, "{RISKY}");
        tools.events.publish(applied.value(), Severity::Warning, RISKY, "Judge", &note).await;
        if let Some((_, source)) = deployed::source_of(&tools.catalog, &applied) {
            let note = format!("Kustomization {}/{}: {note}", object.namespace, object.name);
            tools.events.publish(source.value(), Severity::Warning, RISKY, "Judge", &note).await;
        }
        Ok(())
    }

    /// Publishes Events if the admission webhook has rejected a new revision of the Flux source `object`. One Event
    /// refers to the source. One more Event refers to each Kustomization that is named in the status message of the
    /// source.
    async fn source(&self, object: &Reference, stored: &Stored, tools: &Tools) {
        let Some(message) = deployed::withheld(stored.value()) else { return self.forget(object) };
        self.report(object, stored.value(), "RevisionWithheld", message, tools).await;
        for user in deployed::users(&tools.catalog, object.kind, stored) {
            let is_named = message.contains(&format!("Kustomization {}/{}:", user.namespace, user.name));
            let found = tools.catalog.find(user.kind, &user.namespace, &user.name).filter(|_| is_named);
            if let Some(found) = found {
                self.report(&user, found.value(), "RevisionWithheld", message, tools).await;
            }
        }
    }

    async fn report(&self, object: &Reference, value: &Value, reason: &str, note: &str, tools: &Tools) {
        if self.remember(object, note) {
            tracing::warn!(kind = object.kind.kind, namespace = object.namespace, name = object.name, note, "{reason}");
            tools.events.publish(value, Severity::Warning, reason, "Judge", note).await;
        }
    }

    /// Stores `note`, the message of the last Event on an object. If it differs from the previous message, queues the
    /// object for another audit, and returns `true`.
    fn remember(&self, object: &Reference, note: &str) -> bool {
        let mut reported = self.reported();
        if reported.len() >= MAX_REPORTED {
            reported.clear();
        }
        let is_new = reported.insert(object.clone(), note.to_owned()).as_deref() != Some(note);
        if is_new {
            self.change(object);
        }
        is_new
    }

    fn forget(&self, object: &Reference) {
        if self.reported().remove(object).is_some() {
            self.change(object);
        }
    }

    /// Queues a Kustomization for another audit. Ignores Flux sources, because an audit finds nothing in them.
    fn change(&self, object: &Reference) {
        if !deployed::is_source(object.kind) {
            self.changed.add([object.clone()]);
        }
    }

    /// Locks the map with the last Event message of each object. The map is consistent even after a panic, because each
    /// change of the map is a single call.
    fn reported(&self) -> MutexGuard<'_, HashMap<Reference, String>> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the error message for the kustomization `root` if its build is certain to fail; otherwise `None`. `judged`
/// is the result of checking the kustomization.
fn note(root: &Root, judged: &Judged) -> Option<String> {
    let refused: Vec<_> = judged.findings.iter().filter(|finding| finding.location.refused).collect();
    let first = refused.iter().find(|finding| finding.location.first).or(refused.first())?;
    let revision = root.artifact().map(Artifact::short_revision).unwrap_or_default();
    let more = match refused.len() - 1 {
        0 => String::new(),
        others => format!("\nand {others} more"),
    };
    Some(format!("revision {revision} cannot be built: {}{more}", first.paragraph()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kustomize::Files;
    use crate::kustomize::delivery::judge;
    use crate::kustomize::engine::Shared;
    use crate::kustomize::tree::{Memory, Tree};

    fn source(digest: &str, ready: Value) -> Value {
        json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
               "metadata": {"name": "fleet", "namespace": "flux-system"},
               "status": {"artifact": {"url": "http://x/a.tar.gz", "digest": digest, "revision": "main@sha1:1"},
                          "conditions": [ready]}})
    }

    fn catalog() -> Catalog {
        let kustomization = json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "apps", "namespace": "team-a"},
            "spec": {"path": "apps", "sourceRef": {"kind": "GitRepository", "name": "fleet", "namespace": "flux-system"}},
        });
        Catalog::of(deployed::KINDS, vec![kustomization, source("sha256:1", json!({}))])
    }

    fn controller() -> FluxTrees {
        let (plans, reported, changed) = (PlanSettings::default(), Mutex::default(), Arc::default());
        FluxTrees { trees: None, hosts: Vec::new(), plans, reported, changed }
    }

    fn affected(before: Value, now: Value) -> Vec<String> {
        let kind = deployed::KINDS[1];
        let stored = |value| {
            let catalog = Catalog::of([kind], vec![value]);
            catalog.find(kind, "flux-system", "fleet")
        };
        let change = Change { kind, before: stored(before), now: stored(now) };
        controller().affected(&change, &catalog()).into_iter().map(|reference| reference.name).collect()
    }

    #[test]
    fn a_new_or_withheld_artifact_affects_all_kustomizations_of_the_source() {
        let withheld = json!({"type": "Ready", "status": "False", "reason": "RevisionWithheld", "message": "why"});
        let one = || source("sha256:1", json!({}));
        assert_eq!(affected(one(), source("sha256:2", json!({}))), ["apps", "fleet"]);
        assert_eq!(affected(one(), source("sha256:1", withheld)), ["apps", "fleet"]);
        assert_eq!(affected(one(), source("sha256:1", json!({"type": "Ready", "status": "True"}))), [""; 0]);
    }

    #[test]
    fn the_note_names_the_revision_and_the_first_build_error() {
        let catalog = catalog();
        let stored = catalog.find(deployed::KINDS[0], "team-a", "apps").unwrap();
        let root = deployed::root(&catalog, &stored).unwrap();
        let judged = |resources: &str| {
            let files = Memory::new().file("apps/kustomization.yaml", format!("resources: {resources}\n"));
            note(&root, &judge(&Tree::new(files, "/"), &root, (&Files::default(), &Shared::default())))
        };
        assert_eq!(judged("[]"), None);
        let note = judged("[gone.yaml, ../gone]").unwrap();
        assert!(note.starts_with("revision main@sha1:1 cannot be built: KZ004 resources[0]: \"gone.yaml\""), "{note}");
        assert!(note.ends_with("and 1 more"), "{note}");
    }

    #[test]
    fn reports_the_same_note_once() {
        let (controller, object) = (controller(), Reference::new(deployed::KINDS[0], "team-a", "apps"));
        let remembers = |note: &str| controller.remember(&object, note);
        assert!(remembers("a") && !remembers("a") && remembers("b"));
        controller.forget(&object);
        assert!(remembers("b"));
    }

    /// Checks that a Kustomization is audited again when its tree breaks or is repaired, so that its policy report is
    /// current.
    #[test]
    fn a_kustomization_is_changed_if_its_tree_becomes_broken_or_is_repaired() {
        let (controller, object) = (controller(), Reference::new(deployed::KINDS[0], "team-a", "apps"));
        let changed = || controller.changed.take();
        controller.forget(&object);
        assert_eq!(changed(), []);
        controller.remember(&object, "a");
        assert_eq!(changed(), std::slice::from_ref(&object));
        controller.remember(&object, "a");
        assert_eq!(changed(), [], "it is known");
        controller.forget(&object);
        assert_eq!(changed(), [object]);
        controller.remember(&Reference::new(deployed::KINDS[1], "team-a", "fleet"), "withheld");
        assert_eq!(changed(), [], "it is a source");
    }
}
