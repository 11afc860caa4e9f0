//! The transformers of `patches`, `patchesStrategicMerge` and `patchesJson6902`.
//!
//! Source: kustomize's `PatchTransformer`, `PatchStrategicMergeTransformer` and `PatchJson6902Transformer`.

use std::sync::Arc;

use super::budget::Budget;
use super::id::Scope;
use super::json6902;
use super::read::{self, BadObjects};
use super::resmap::ResMap;
use super::resource::Resource;
use super::run::Run;
use super::select::{Compiled, select};
use super::shared;
use super::stop::Failed;
use crate::kustomize::file::PatchOptions;
use crate::kustomize::merge;
use crate::kustomize::node::{Entry, Node, Origin};
use crate::kustomize::schema::Schema;

/// A patch that has been read.
#[derive(Debug, Clone)]
pub(super) enum Patch {
    /// Objects that are merged into others.
    Strategic(Vec<Resource>),
    /// Operations.
    Json(json6902::Patch),
}

/// Why a patch is invalid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum BadPatch {
    /// Neither objects nor operations.
    #[error("the patch is neither an object nor a list of operations: {0}; {1}")]
    Neither(BadObjects, String),
    /// The text is valid as both kinds of patch.
    #[error("the patch is both an object and a list of operations")]
    Both,
}

impl Patch {
    /// Reads a patch.
    ///
    /// # Errors
    ///
    /// If it is neither objects nor operations, or both.
    pub(super) fn read(text: &str, source: u32) -> Result<Self, BadPatch> {
        let objects = read::objects_of_text(text, source);
        let operations = json6902::Patch::read(text);
        match (objects, operations) {
            (Ok(objects), Ok(operations)) if !objects.is_empty() && !operations.is_empty() => Err(BadPatch::Both),
            (Ok(objects), _) => Ok(Self::Strategic(objects)),
            (Err(_), Ok(operations)) => Ok(Self::Json(operations)),
            (Err(objects), Err(operations)) => Err(BadPatch::Neither(objects, operations)),
        }
    }
}

/// What all patches of a transformer share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Merging<'s> {
    /// By which lists are merged.
    pub schema: &'s Schema,
    /// Limits the size of the objects.
    pub budget: &'s Budget,
    /// What may change.
    pub allow_name_change: bool,
    /// What may change.
    pub allow_kind_change: bool,
}

impl<'s> Merging<'s> {
    /// Creates a merge with the options of a patch.
    pub(super) fn new(run: &'s Run<'_>, options: Option<&PatchOptions>) -> Self {
        Self {
            schema: &run.schema,
            budget: &run.budget,
            allow_name_change: options.is_some_and(|options| options.allow_name_change),
            allow_kind_change: options.is_some_and(|options| options.allow_kind_change),
        }
    }

    /// Merges a patch into an object; the object becomes empty if the patch deletes it.
    ///
    /// # Errors
    ///
    /// If the patch does not fit.
    pub(super) fn apply(&self, resource: &mut Resource, patch: &Node, scope: &Scope) -> Result<(), Failed> {
        self.budget.node(patch)?;
        let [name, namespace, kind] = [resource.name(), resource.namespace(), resource.kind()].map(str::to_owned);
        if self.allow_name_change || self.allow_kind_change {
            resource.store_previous_id(scope);
        }
        if drops_annotations(patch) {
            resource.forget();
        }
        match merge::merge(&resource.node, patch, self.schema).map_err(|error| error.to_string())? {
            Some(mut merged) => {
                if !resource.shared.is_empty() {
                    shared::keep(&mut merged, &resource.node);
                }
                resource.node = merged;
            }
            None => {
                resource.node = Node::map(Vec::new());
                return Ok(());
            }
        }
        resource.spread();
        if !self.allow_kind_change {
            resource.set_kind(&kind);
        }
        if !self.allow_name_change {
            resource.set_name(&name);
        }
        resource.set_namespace(&namespace);
        Ok(())
    }
}

/// Returns whether a patch removes all annotations, including those in which kustomize stores previous identities.
fn drops_annotations(patch: &Node) -> bool {
    let Some(annotations) = patch.at_path(&["metadata", "annotations"]) else { return false };
    let directive = annotations.get("$patch").and_then(Node::text);
    annotations.is_null() || matches!(directive, Some("replace" | "delete"))
}

/// Merges objects into those with the same identities.
///
/// # Errors
///
/// If there is no such object, or several.
pub(super) fn merge_by_id(map: &mut ResMap, patches: &[Resource], merging: &Merging<'_>) -> Result<(), Failed> {
    let scope = map.scope.clone();
    for patch in patches {
        merging.budget.steps(map.resources().len())?;
        let at = target_of(map, patch)?;
        if let Some(resource) = map.resources_mut().get_mut(at) {
            merging.apply(resource, &patch.node, &scope)?;
        }
    }
    Ok(())
}

/// Merges an object into others, and takes their group and version.
///
/// # Errors
///
/// If the patch does not fit an object.
pub(super) fn merge_into(
    map: &mut ResMap,
    places: &[usize],
    patch: &Resource,
    merging: &Merging<'_>,
) -> Result<(), Failed> {
    let scope = map.scope.clone();
    let mut patch = patch.clone();
    rewrite_metadata(&mut patch);
    for at in places {
        let Some(resource) = map.resources_mut().get_mut(*at) else { continue };
        let mut node = patch.node.clone();
        match resource.node.get("apiVersion") {
            Some(version) => node.set("apiVersion", version.clone()),
            None => drop(node.remove("apiVersion")),
        }
        merging.apply(resource, &node, &scope)?;
    }
    map.drop_empty();
    match map.duplicate() {
        Some((_, other)) => {
            Err(format!("may not add resource with an already registered id: {}", other.id(&scope)).into())
        }
        None => Ok(()),
    }
}

/// Converts labels and annotations of a patch to strings, as kustomize does with a copy: null becomes the string
/// `null`, and removes nothing.
fn rewrite_metadata(patch: &mut Resource) {
    let Some(metadata) = patch.metadata() else { return };
    for field in ["labels", "annotations"] {
        let Some(map) = metadata.get(field) else { continue };
        let string = |entry: &Entry| {
            let text = entry.value.text().unwrap_or_default();
            Entry::new(Arc::clone(&entry.key), Node::string(text).at(entry.value.origin))
        };
        let rewritten = Node::map(map.entries().iter().map(string).collect()).at(map.origin);
        match rewritten.entries().is_empty() {
            true => drop(metadata.remove(field)),
            false => metadata.set(field, rewritten),
        }
    }
}

/// Merges objects into those with the same identities, for `patchesStrategicMerge`.
///
/// # Errors
///
/// If there is no such object, or several.
pub(super) fn merge_list(map: &mut ResMap, patches: &[Resource], merging: &Merging<'_>) -> Result<(), Failed> {
    for patch in patches {
        merging.budget.steps(map.resources().len())?;
        let at = target_of(map, patch)?;
        merge_into(map, &[at], patch, merging)?;
    }
    Ok(())
}

/// Returns the place of the one object that has, or had, the identity of a patch.
fn target_of(map: &ResMap, patch: &Resource) -> Result<usize, String> {
    let id = patch.original_id(&map.scope);
    match map.matching_any_id(|other| *other == id).as_slice() {
        [at] => Ok(*at),
        found => {
            let how_many = if found.is_empty() { "no" } else { "more than one" };
            Err(format!("{how_many} resource matches strategic merge patch {id}"))
        }
    }
}

/// The operations of a JSON patch and how they are applied.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operations<'s> {
    /// The operations.
    pub patch: &'s json6902::Patch,
    /// Where they are written.
    pub origin: Origin,
    /// Whether objects keep their previous identity.
    pub stores_id: bool,
    /// Limits the size of the objects.
    pub budget: &'s Budget,
}

impl Operations<'_> {
    /// Applies the operations to all objects that a selector selects.
    ///
    /// # Errors
    ///
    /// If an operation fails.
    pub(super) fn apply(&self, map: &mut ResMap, selector: &Compiled) -> Result<(), Failed> {
        let scope = map.scope.clone();
        for at in select(map.resources(), selector, &scope) {
            if let Some(resource) = map.resources_mut().get_mut(at) {
                self.apply_to(resource, &scope)?;
            }
        }
        Ok(())
    }

    fn apply_to(&self, resource: &mut Resource, scope: &Scope) -> Result<(), Failed> {
        if self.stores_id {
            resource.store_previous_id(scope);
        }
        if resource.has_internal_annotations() {
            let _ = resource.metadata_map("annotations");
        }
        let id = resource.id(scope).to_string();
        self.patch.apply(&mut resource.node, self.origin, self.budget).map_err(|failed| failed.within(&id))?;
        resource.shared.clear();
        let is_empty = |node: &Node| node.is_null_or_empty();
        if resource.node.at_path(&["metadata", "annotations"]).is_some_and(is_empty)
            && let Some(metadata) = resource.metadata()
        {
            metadata.remove("annotations");
        }
        Ok(())
    }
}
