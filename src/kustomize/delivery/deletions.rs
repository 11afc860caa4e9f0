//! What Flux deletes because of an update of a Kustomization: its inventory without what the new tree renders.

use serde_json::Value;

use super::{Judged, Root};
use crate::admission::{Finding, Metadata, Request};
use crate::kustomize::flux::stale;
use crate::kustomize::object_id::ObjectId;
use crate::kustomize::rules::{kz060, kz061};

/// Returns findings about the deletions of an update. Nothing is said if the tree may be late, or its objects are not known.
pub(super) fn of_update(request: &Request<'_>, root: &Root, judged: &Judged) -> Vec<Finding> {
    let (Some(rendered), Some(artifact), None) = (&judged.rendered, root.artifact(), root.late) else {
        return Vec::new();
    };
    of_kustomization(request.object(), request.old_object(), rendered, &artifact.short_revision())
}

/// Returns findings about the objects in the inventory of `old` that `new` does not render.
pub fn of_kustomization(new: &Value, old: &Value, rendered: &[ObjectId], revision: &str) -> Vec<Finding> {
    let prunes = new.pointer("/spec/prune") == Some(&Value::Bool(true));
    if !prunes || Metadata::of(new).is_deleting() {
        return Vec::new();
    }
    let inventory = ObjectId::of_inventory(old);
    let stale = stale(&inventory, rendered);
    let many = kz061::found(&stale, inventory.len(), revision);
    kz060::found(&stale, revision).into_iter().chain(many).collect()
}
