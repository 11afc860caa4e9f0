//! The transformers for the fields `patches`, `patchesStrategicMerge` and `patchesJson6902` of a kustomization.
//!
//! Source: kustomize's `PatchTransformer`, `PatchStrategicMergeTransformer` and `PatchJson6902Transformer`.

use std::sync::Arc;

use super::finish;
use super::json6902;
use super::lost::Lost;
use super::odd_annotations;
use super::resmap::ResMap;
use super::resource::Resource;
use super::run::Run;
use super::shared;
use super::stop::{Failed, Step, Stop};
use crate::admission::field::FieldPath;
use crate::kustomize::file::PatchOptions;
use crate::kustomize::finding::Site;
use crate::kustomize::identity::{Id, Scope};
use crate::kustomize::merge::{self, MergeError};
use crate::kustomize::node::{Entry, Node, Origin, Tag};
use crate::kustomize::rules::{kz014, kz030};
use crate::kustomize::schema::Schema;

/// The parameters for merging patches into objects: the build, the position of the patch, and its options.
#[derive(Clone, Copy)]
pub(super) struct Merging<'s, 'r> {
    /// The state of the build in progress.
    run: &'s Run<'r>,
    /// The position of the kustomization entry that configures the patch.
    site: &'s Site,
    /// Whether a patch may change the name of an object.
    allow_name_change: bool,
    /// Whether a patch may change the kind of an object.
    allow_kind_change: bool,
}

impl<'s, 'r> Merging<'s, 'r> {
    /// Creates the parameters for merging a patch from the options of the patch.
    pub(super) fn new(run: &'s Run<'r>, site: &'s Site, options: Option<&PatchOptions>) -> Self {
        Self {
            run,
            site,
            allow_name_change: options.is_some_and(|options| options.allow_name_change),
            allow_kind_change: options.is_some_and(|options| options.allow_kind_change),
        }
    }

    /// Merges a patch into an object. The object keeps its namespace. It also keeps its name and kind, unless the
    /// options of the patch allow a change. If the patch deletes the object, the object becomes empty.
    fn apply(&self, resource: &mut Resource, patch: &Node, schema: &Schema, scope: &Scope) -> Result<(), Failed> {
        self.run.budget.node(patch)?;
        let [name, namespace, kind] = [resource.name(), resource.namespace(), resource.kind()].map(str::to_owned);
        if self.changes_identity() {
            resource.store_previous_id(scope);
        }
        if !merge_with_state(resource, patch, schema).map_err(|error| error.to_string())? {
            return Ok(());
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

    fn change(&self, map: &mut ResMap, at: usize, patch: &Node) -> Step<()> {
        let (scope, mut lost) = (map.scope.clone(), map.lost);
        let schema = self.run.schema_for_merging()?;
        let changed = map.change(at, |resource| {
            let changed = self.apply(resource, patch, schema, &scope);
            let changed = changed.map_err(|failed| inapplicable(failed, self.site, &resource.id(&scope)));
            self.run.recover_object(resource, &mut lost, changed)
        });
        changed.transpose()?;
        if self.changes_identity() {
            map.lost = lost;
        }
        Ok(())
    }

    /// Merges a patch into the object that has the same identity as the patch.
    ///
    /// # Errors
    ///
    /// - If no object or more than one object has this identity.
    /// - If the patch cannot be merged into the object.
    /// - If a limit is exceeded.
    ///
    /// A build that continues after errors records most of these errors instead of returning them.
    pub(super) fn merge_by_id(&self, map: &mut ResMap, patch: &Resource) -> Step<()> {
        let Some(at) = self.target(map, patch)? else { return Ok(()) };
        if !self.changes_identity() {
            return self.change(map, at, &patch.node);
        }
        // kustomize stores the options in annotations of the patch, which converts the values of all annotations to
        // strings
        let patch = self.rewritten(map, patch, &["annotations"])?;
        self.change(map, at, &patch.node)
    }

    /// Returns a copy of a patch in which all values in some fields of `metadata` are strings. `fields` contains the
    /// names of these fields, such as `labels`.
    ///
    /// # Errors
    ///
    /// If one of these fields is a list with an odd number of items. kustomize reads such a list as alternating keys
    /// and values, and panics because the last key has no value.
    fn rewritten(&self, map: &ResMap, patch: &Resource, fields: &[&str]) -> Step<Resource> {
        let mut copy = patch.clone();
        let rewritten = rewrite_metadata(&mut copy, fields).map_err(|error| Failed::from(error.to_string()));
        rewritten.map_err(|failed| inapplicable(failed, self.site, &patch.id(&map.scope)))?;
        Ok(copy)
    }

    /// Returns whether the options of the patch allow it to change the name or the kind of an object.
    fn changes_identity(&self) -> bool {
        self.allow_name_change || self.allow_kind_change
    }

    /// Merges a patch of `patchesStrategicMerge` into the object that has the same identity as the patch.
    ///
    /// # Errors
    ///
    /// - If no object or more than one object has this identity.
    /// - If the patch cannot be merged into the object.
    /// - If a limit is exceeded.
    ///
    /// A build that continues after errors records most of these errors instead of returning them.
    pub(super) fn merge_listed(&self, map: &mut ResMap, patch: &Resource) -> Step<()> {
        match self.target(map, patch)? {
            Some(at) => self.merge_into(map, &[at], patch),
            None => Ok(()),
        }
    }

    /// Returns the index of the only object whose current or previous identity equals the identity of the patch. It is
    /// an error if no object or more than one object has this identity. If the build continues after errors, records
    /// this error and returns `None`.
    fn target(&self, map: &mut ResMap, patch: &Resource) -> Step<Option<usize>> {
        let steps = self.run.budget.steps(map.resources().len());
        steps.map_err(|exceeded| Stop::limit(self.site.clone(), exceeded))?;
        self.run.check_identities(map)?;
        let target = match patch.unreadable_identities() {
            Some(why) => Err(inapplicable(Failed::from(why), self.site, &patch.id(&map.scope))),
            None => target_of(map, patch, self.site),
        };
        self.run.recover(&mut map.lost, Lost::Nothing, target)
    }

    /// Merges a patch into the objects of `map` with the indexes `places`. Each object keeps its own `apiVersion`, even
    /// if the patch has another one. Objects that the patch deletes are removed from `map`.
    ///
    /// # Errors
    ///
    /// - If the patch cannot be merged into an object.
    /// - If two objects have the same identity after the merge.
    /// - If a limit is exceeded.
    ///
    /// A build that continues after errors records most of these errors instead of returning them.
    pub(super) fn merge_into(&self, map: &mut ResMap, places: &[usize], patch: &Resource) -> Step<()> {
        let fields: &[&str] = match (places, self.changes_identity()) {
            ([], false) => &[],
            ([], true) => &["annotations"],
            _ => &["labels", "annotations"],
        };
        let patch = self.rewritten(map, patch, fields)?;
        for at in places {
            let Some(resource) = map.resources().get(*at) else { continue };
            let mut node = patch.node.clone();
            let version = resource.node.get("apiVersion").filter(|version| !version.is_null()).cloned();
            let lacks_version = version.is_none();
            match version {
                Some(version) => node.set("apiVersion", version),
                None => drop(node.remove("apiVersion")),
            }
            self.change(map, *at, &node)?;
            if lacks_version && !is_directive(&node) {
                add_null_version(map, *at);
            }
        }
        map.drop_empty_at(places);
        self.run.unique(map, self.site)
    }
}

/// Returns whether the top level of a patch has the directive `$patch: replace` or `$patch: delete`, so that the patch
/// replaces or deletes the whole object.
fn is_directive(patch: &Node) -> bool {
    matches!(patch.get("$patch").and_then(Node::text), Some("replace" | "delete"))
}

/// Adds the field `apiVersion` without a value, which YAML parses as null, to the object at index `at`. kustomize does
/// the same when it merges a patch into an object without `apiVersion`.
fn add_null_version(map: &mut ResMap, at: usize) {
    let mut null = Node::null();
    null.set_text("");
    map.change(at, |resource| {
        if !resource.node.entries().is_empty() {
            resource.node.set("apiVersion", null);
        }
    });
}

/// Returns the error for a patch that cannot be applied to an object. `failed` is the reason.
fn inapplicable(failed: Failed, site: &Site, id: &Id<'_>) -> Stop {
    failed.by(site.clone(), |site, why| kz014::inapplicable(site, &id.words(), why))
}

/// Merges a patch into an object. Returns `true` if the object remains. If the patch deletes the object, returns
/// `false` and makes `resource.node` an empty mapping.
///
/// During a build, kustomize stores internal data, such as previous names, in annotations of the object. If a patch
/// removes all annotations, kustomize loses this data. Portcullis stores the data in other fields of `resource`, and
/// this function clears these fields after such a patch.
fn merge_with_state(resource: &mut Resource, patch: &Node, schema: &Schema) -> Result<bool, MergeError> {
    // If the user wrote `annotations` twice, a null field can be left in which kustomize stores identities. A merge
    // drops this field.
    if resource.is_stored_in_null() {
        resource.forget();
    }
    let has_state = resource.write_state();
    let is_left = merge::merge(&resource.node, patch, schema).map(|merged| {
        let is_left = merged.is_some();
        let mut node = merged.unwrap_or_else(|| Node::map(Vec::new()));
        if !resource.shared.is_empty() {
            shared::keep(&mut node, &resource.node);
        }
        resource.node = node;
        is_left
    });
    resource.take_state(has_state);
    is_left
}

/// Converts the values in some fields of a patch's `metadata` to strings, as kustomize does when it writes these
/// fields. `fields` contains the names of the fields, such as `labels`. A null becomes the string `null`, so that it no
/// longer removes a label. Removes a field without values.
///
/// # Errors
///
/// If a field is a list with an odd number of items. kustomize reads a list as alternating keys and values, and panics
/// because the last key has no value.
fn rewrite_metadata(patch: &mut Resource, fields: &[&str]) -> Result<(), MergeError> {
    let Some(metadata) = patch.metadata() else { return Ok(()) };
    for field in fields {
        let Some(map) = metadata.get(field) else { continue };
        let string = |entry: &Entry| {
            let text = entry.value.text().unwrap_or_default();
            Entry::new(Arc::clone(&entry.key), Node::string(text).at(entry.value.origin))
        };
        let no_mapping = || MergeError::no_mapping(FieldPath::of(["metadata", field]), map);
        let listed = odd_annotations::listed(map).ok_or_else(no_mapping)?;
        let rewritten = Node::map(map.entries().iter().chain(&listed).map(string).collect()).at(map.origin);
        match rewritten.entries().is_empty() {
            true => drop(metadata.remove(field)),
            false => metadata.set(field, rewritten),
        }
    }
    Ok(())
}

/// Returns the index of the only object whose current or previous identity equals the identity of the patch.
///
/// # Errors
///
/// If no object or more than one object has this identity.
fn target_of(map: &ResMap, patch: &Resource, site: &Site) -> Step<usize> {
    let id = patch.original_id(&map.scope);
    match map.matching_any_id(|other| *other == id).as_slice() {
        [at] => Ok(*at),
        [] => {
            let others = map.resources().iter().map(|resource| resource.id(&map.scope));
            Err(Stop::of_absence(kz030::no_object_to_patch(site.clone(), &id, others)))
        }
        _ => Err(Stop::of_content(kz030::several_objects_to_patch(site.clone(), &id))),
    }
}

/// The operations of a JSON patch, with the options for applying them to objects.
#[derive(Clone, Copy)]
pub(super) struct Operations<'s, 'r> {
    /// The state of the build in progress.
    pub run: &'s Run<'r>,
    /// The JSON patch operations.
    pub patch: &'s json6902::Patch,
    /// The position of the kustomization entry with the patch.
    pub site: &'s Site,
    /// File and line of the entry with the patch. Nodes that the patch changes get this origin.
    pub origin: Origin,
    /// Whether the name, namespace and kind of an object are recorded before the patch changes the object. References
    /// from other objects may still contain these old values. `true` for the field `patches`, and `false` for
    /// `patchesJson6902`.
    pub stores_id: bool,
}

impl Operations<'_, '_> {
    /// Applies the JSON patch operations to the objects with the indexes `places`.
    ///
    /// # Errors
    ///
    /// If a limit is exceeded. In a build that stops at its first error, also if the patch cannot be applied to an
    /// object.
    pub(super) fn apply(&self, map: &mut ResMap, places: &[usize]) -> Step<()> {
        let (scope, mut lost) = (map.scope.clone(), map.lost);
        for at in places {
            let Some(resource) = map.resources_mut().get_mut(*at) else { continue };
            let changed = self.apply_to(resource, &scope);
            let changed = changed.map_err(|failed| inapplicable(failed, self.site, &resource.id(&scope)));
            self.run.recover_object(resource, &mut lost, changed)?;
        }
        map.lost = lost;
        Ok(())
    }

    fn apply_to(&self, resource: &mut Resource, scope: &Scope) -> Result<(), Failed> {
        let was_stored_in_null = resource.is_stored_in_null();
        if self.stores_id {
            resource.store_previous_id(scope);
        }
        self.check_is_known(resource, was_stored_in_null)?;
        // kustomize creates a missing field `annotations` to store its internal annotations, but a null field remains
        // null
        if resource.has_internal_annotations() && resource.node.at_path(&["metadata", "annotations"]).is_none() {
            let _ = resource.metadata_map("annotations");
        }
        resource.write_notes();
        let applied = self.patch.apply(&mut resource.node, self.origin, &self.run.budget);
        resource.take_notes();
        applied?;
        resource.shared.clear();
        if finish::has_nameless_annotation(resource) {
            return self.without_annotations(resource);
        }
        let is_empty = |node: &Node| node.is_null_or_empty();
        if resource.node.at_path(&["metadata", "annotations"]).is_some_and(is_empty)
            && let Some(metadata) = resource.metadata()
        {
            metadata.remove("annotations");
        }
        resource.rewrite_annotations();
        tag_merge_keys(&mut resource.node);
        resource.rebuilt = Some(Arc::new(resource.node.clone()));
        Ok(())
    }

    /// Checks that Portcullis can determine the result of the JSON patch on `resource`. During a build, kustomize
    /// stores internal data in annotations of objects, such as previous names. Portcullis does not store this data in
    /// annotations, so it cannot determine the result if the patch reads annotations.
    ///
    /// The result is also unknown if the object has a duplicate key `annotations`, and kustomize stores its data there.
    /// `was_stored_in_null` is true in one such case: before the patch, the data was in a field `annotations` with the
    /// tag `!!null`.
    ///
    /// # Errors
    ///
    /// [`Failed::Unknown`] with the reason, if the result cannot be determined. This is also the case if the patch adds
    /// the YAML merge key `<<`, because kustomize merges the value of this key into the object after the patch.
    fn check_is_known(&self, resource: &Resource, was_stored_in_null: bool) -> Result<(), Failed> {
        let several = |metadata: &Node| odd_annotations::count(metadata) > 1;
        let reason = if self.patch.adds_merge_key() {
            "it adds the key `<<`, which kustomize merges after the patch"
        } else if !resource.has_internal_annotations() {
            return Ok(());
        } else if self.patch.reads_annotations() {
            "it reads annotations, in which kustomize stores internal state"
        } else if was_stored_in_null || resource.node.get("metadata").is_some_and(several) && resource.has_notes() {
            "the object had a duplicate key metadata.annotations, in which kustomize stores internal state"
        } else {
            return Ok(());
        };
        Err(Failed::Unknown(reason.to_owned()))
    }

    /// Handles an object that has an annotation with an invalid key after a JSON patch was applied. A key is invalid if
    /// it is empty, a list or a mapping. Like kustomize, removes all annotations of the object if the patch is in the
    /// field `patches`, and returns an error if it is in `patchesJson6902`.
    fn without_annotations(&self, resource: &mut Resource) -> Result<(), Failed> {
        if !self.stores_id {
            return Err("an annotation has an empty key".into());
        }
        resource.forget();
        if let Some(metadata) = resource.metadata() {
            metadata.remove("annotations");
        }
        Ok(())
    }
}

/// Tags the scalars `<<` of a patched object as merge keys. kustomize prints the object without quotes around `<<`, and
/// then parses the text again.
fn tag_merge_keys(node: &mut Node) {
    if !contains_merge_key(node) {
        return;
    }
    if node.is_scalar() {
        node.tag = Tag::Merge;
    }
    node.entries_mut().into_iter().flatten().for_each(|entry| tag_merge_keys(&mut entry.value));
    node.items_mut().into_iter().flatten().for_each(tag_merge_keys);
}

/// Returns whether a value in `node` is the text `<<`. kustomize treats such a value as the YAML merge key when it
/// parses the patched object again. Ignores the keys of mappings.
fn contains_merge_key(node: &Node) -> bool {
    node.text() == Some("<<")
        || node.entries().iter().any(|entry| contains_merge_key(&entry.value))
        || node.items().iter().any(contains_merge_key)
}
