//! Copies the dry-run annotations of a root Installation to the existing objects that it owns, directly or indirectly.
//! These are Installations, Executions and DeployItems.
//!
//! The admission webhooks copy the annotations only when an owned object is created or updated. This controller patches
//! the other objects that need them:
//!
//! * objects whose root Installation got different annotations
//! * objects that were created before the webhooks were installed
//!
//! Neither the webhooks nor this controller change objects that are being deleted.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::future::BoxFuture;
use kube::api::{Patch, PatchParams};
use serde_json::{Map, Value, json};

use super::live_read::with_live_reads;
use super::{Controller, Failure, Next, Permission, Tools};
use crate::admission::Metadata;
use crate::catalog::{Catalog, Change, Kind, LiveReads, Reference, Stored, View, cluster};
use crate::landscaper::dry_run::inheritance::{Inheritance, inheritance, is_consistent, wanted_annotations};
use crate::landscaper::dry_run::owner_chain::{self, Root};
use crate::landscaper::dry_run_annotations::DryRunAnnotations;
use crate::landscaper::kinds::{BY_OWNER, DEPLOY_ITEMS, EXECUTIONS, GROUP, INSTALLATIONS, owner_key};
use crate::landscaper::owner::owner;

/// Field manager of this controller's writes, as in `metadata.managedFields`.
const MANAGER: &str = "portcullis-dry-run-marks";
/// The kinds of objects below a root Installation. The first kind is also the kind of the root.
static KINDS: &[&Kind] = &[&INSTALLATIONS, &EXECUTIONS, &DEPLOY_ITEMS];
/// Maximum number of directly or indirectly owned objects that are reconciled when their owner changes. It bounds the
/// work for one change, even if owner references form a cycle. Further objects are reconciled only when they change
/// themselves.
const MAX_BELOW: usize = 10_000;

/// A controller that copies the dry-run annotations of a root Installation to the objects below it.
pub(super) struct AnnotationController;

impl Controller for AnnotationController {
    fn name(&self) -> &'static str {
        "dry-run-marks"
    }

    fn family(&self) -> Option<&'static str> {
        Some("DR")
    }

    fn summary(&self) -> &'static str {
        "copies the dry-run annotations of a root to existing objects below it"
    }

    fn watches(&self) -> &'static [&'static Kind] {
        KINDS
    }

    fn permissions(&self) -> &'static [Permission] {
        &[Permission {
            group: GROUP,
            resources: &["deployitems", "executions", "installations"],
            names: &[],
            verbs: &["patch"],
        }]
    }

    /// Returns the changed object. If its dry-run annotations or its owner changed, also returns all objects that it
    /// owns directly or indirectly.
    fn affected(&self, change: &Change, catalog: &Catalog) -> Vec<Reference> {
        let object = change.reference();
        let of = |stored: &Arc<Stored>| {
            let owner = owner(stored.value()).map(|owner| owner_key(owner.kind.name(), owner.name));
            let annotations = DryRunAnnotations::of(stored.value());
            (owner, annotations.dry_run.map(str::to_owned), annotations.configuration.map(str::to_owned))
        };
        if change.before.as_ref().map(of) == change.now.as_ref().map(of) {
            return vec![object];
        }
        let mut affected = below(&object, catalog);
        affected.push(object);
        affected
    }

    fn reconcile<'a>(&'a self, object: &'a Reference, tools: &'a Tools) -> BoxFuture<'a, Result<Next, Failure>> {
        Box::pin(async move {
            // The catalog may be outdated. A change that it does not contain yet triggers another reconciliation.
            if is_as_it_should_be(object, &tools.catalog) {
                return Ok(Next::Done);
            }
            let found = cluster::read(&tools.client, object).await.map_err(Failure::api("reading it"))?;
            let Some(stored) = found.filter(|stored| !Metadata::of(stored).is_deleting()) else {
                return Ok(Next::Done);
            };
            let ask = |view: &View<'_>| inheritance(&stored, &object.namespace, view);
            match with_live_reads(tools, ask).await {
                Inheritance::Root(root) if !is_consistent(&stored, root.value()) => {
                    write(object, &stored, root.value(), tools).await
                }
                Inheritance::Unreadable(above) => {
                    Err(Failure::Unknown(format!("{above:?} in its owner chain could not be read")))
                }
                Inheritance::Root(_) | Inheritance::Itself | Inheritance::Orphan(_) | Inheritance::Replaced(_) => {
                    Ok(Next::Done)
                }
            }
        })
    }
}

fn is_as_it_should_be(object: &Reference, catalog: &Catalog) -> bool {
    let Some(stored) = catalog.find(object.kind, &object.namespace, &object.name) else { return true };
    let nothing = LiveReads::new();
    let root = || owner_chain::root(stored.value(), &object.namespace, &View::new(catalog, &nothing)).0;
    Metadata::of(stored.value()).is_deleting()
        || match root() {
            Root::Own | Root::Orphan(_) | Root::Replaced(_) => true,
            Root::Of(root) => is_consistent(stored.value(), root.value()),
            Root::Unknown(_) => false,
        }
}

async fn write(object: &Reference, stored: &Value, root: &Value, tools: &Tools) -> Result<Next, Failure> {
    let patch = patch(stored, root);
    let api = cluster::api(&tools.client, object);
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    match api.patch(&object.name, &params, &Patch::Merge(&patch)).await {
        Ok(_) => {}
        // The object was deleted in the meantime.
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Next::Done),
        Err(error) => return Err(Failure::api("writing its annotations")(error)),
    }
    let (kind, namespace, name) = (object.kind.kind, object.namespace.as_str(), object.name.as_str());
    tracing::info!(
        kind,
        namespace,
        name,
        dry_run = DryRunAnnotations::of(root).is_dry_run(),
        "copied the dry-run annotations of its root"
    );
    Ok(Next::Done)
}

/// Returns a JSON merge patch that copies the dry-run annotations of `root` to the object `stored`. `root` is the last
/// object in the chain of owners of `stored`, usually an Installation. The API server rejects the patch if `stored` is
/// no longer the current version of the object.
fn patch(stored: &Value, root: &Value) -> Value {
    let version = Metadata::of(stored).resource_version();
    let members = wanted_annotations(stored, root, false).into_iter().map(|(key, text)| (key.to_owned(), text.into()));
    json!({"metadata": {"resourceVersion": version, "annotations": Value::Object(members.collect::<Map<_, _>>())}})
}

/// Returns the objects that an object owns directly or indirectly, from the catalog. At most [`MAX_BELOW`] objects.
fn below(object: &Reference, catalog: &Catalog) -> Vec<Reference> {
    let mut found: Vec<Reference> = Vec::new();
    let mut open = VecDeque::from([owner_key(object.kind.kind, &object.name)]);
    while let Some(key) = open.pop_front() {
        for kind in KINDS {
            let left = MAX_BELOW.saturating_sub(found.len());
            for stored in catalog.indexed(kind, &BY_OWNER, &object.namespace, &key, left) {
                open.push_back(owner_key(kind.kind, stored.name()));
                found.push(Reference::new(kind, stored.namespace(), stored.name()));
            }
        }
    }
    found
}
