//! The objects of a build, in the order in which they were loaded or sorted.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::lost::Lost;
use super::resource::Resource;
use crate::kustomize::identity::{Id, Scope};

/// The objects of a build, in the order in which they were loaded or sorted.
#[derive(Debug, Clone, Default)]
pub(super) struct ResMap {
    resources: Vec<Resource>,
    /// The lookup that tells whether a kind is namespaced or cluster-scoped. Cluster-scoped objects are compared
    /// without their namespaces.
    pub(super) scope: Scope,
    /// Whether objects may be missing or incomplete because a part of the build failed.
    pub(super) lost: Lost,
    /// Whether at least one file in the field `resources` contains no objects. Such a file may be a placeholder. For
    /// example, `flux bootstrap` adds objects to the file before Flux builds the kustomization.
    pub(super) has_placeholder: bool,
    /// The number of objects with each identity. The keys are hashes of the identities. `None` if the objects may have
    /// changed, so that they must be counted again.
    index: Option<HashMap<u64, u32>>,
}

impl ResMap {
    /// Creates a map without objects.
    pub(super) fn new(scope: Scope) -> Self {
        Self { resources: Vec::new(), scope, lost: Lost::Nothing, has_placeholder: false, index: None }
    }

    /// Returns all objects, in their current order.
    pub(super) fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// Returns a mutable reference to all objects. The caller may rename the objects, so this method deletes the index
    /// that is used to find duplicates.
    pub(super) fn resources_mut(&mut self) -> &mut Vec<Resource> {
        self.index = None;
        &mut self.resources
    }

    /// Calls `change` on the object at index `at`, and returns the result. Returns `None` if there is no object at this
    /// index. If the name, namespace or kind changes, updates the index that is used to find duplicates.
    pub(super) fn change<T>(&mut self, at: usize, change: impl FnOnce(&mut Resource) -> T) -> Option<T> {
        let resource = self.resources.get_mut(at)?;
        let before = hash(&resource.id(&self.scope));
        let changed = change(resource);
        let after = hash(&resource.id(&self.scope));
        if let Some(index) = self.index.as_mut().filter(|_| before != after) {
            if let Entry::Occupied(mut count) = index.entry(before) {
                *count.get_mut() -= 1;
                if *count.get() == 0 {
                    count.remove();
                }
            }
            *index.entry(after).or_default() += 1;
        }
        Some(changed)
    }

    /// Converts the map into its objects.
    pub(super) fn into_resources(self) -> Vec<Resource> {
        self.resources
    }

    /// Appends an object.
    ///
    /// # Errors
    ///
    /// Returns `resource` if another object has the same identity.
    pub(super) fn append(&mut self, resource: Resource) -> Result<(), Box<Resource>> {
        let hash = hash(&resource.id(&self.scope));
        if self.indexed().contains_key(&hash) {
            let id = resource.id(&self.scope);
            if self.resources.iter().any(|other| other.id(&self.scope) == id) {
                return Err(Box::new(resource));
            }
        }
        *self.indexed().entry(hash).or_default() += 1;
        self.resources.push(resource);
        Ok(())
    }

    /// Returns the first object with the current identity `id`.
    pub(super) fn with_id(&self, id: &Id<'_>) -> Option<&Resource> {
        self.resources.iter().find(|resource| resource.id(&self.scope) == *id)
    }

    /// Removes all empty objects, but only if one of the objects at the indexes `places` is empty. Call this function
    /// after a patch is merged into these objects. A patch that deletes an object leaves an empty object.
    pub(super) fn drop_empty_at(&mut self, places: &[usize]) {
        let mut changed = places.iter().filter_map(|at| self.resources.get(*at));
        if changed.any(|resource| resource.node.is_null_or_empty()) {
            self.drop_empty();
        }
    }

    /// Removes all empty objects.
    pub(super) fn drop_empty(&mut self) {
        if self.resources.iter().any(|resource| resource.node.is_null_or_empty()) {
            self.resources_mut().retain(|resource| !resource.node.is_null_or_empty());
        }
    }

    /// Returns the indexes of the objects that have an identity for which `condition` returns true. This can be the
    /// current identity or a previous one. Skips empty objects.
    pub(super) fn matching_any_id(&self, condition: impl Fn(&Id<'_>) -> bool) -> Vec<usize> {
        let matches =
            |resource: &Resource| !resource.node.is_null_or_empty() && resource.any_id(&self.scope, &condition);
        self.positions(matches)
    }

    /// Returns the indexes of the objects for which `condition` returns true.
    pub(super) fn positions(&self, condition: impl Fn(&Resource) -> bool) -> Vec<usize> {
        let objects = self.resources.iter().enumerate();
        objects.filter(|(_, resource)| condition(resource)).map(|(at, _)| at).collect()
    }

    /// Returns whether two of the objects may have the same identity.
    pub(super) fn may_have_duplicates(&mut self) -> bool {
        self.indexed().len() < self.resources.len()
    }

    /// Returns pairs of objects with the same identity. The first object of a pair comes before the second.
    pub(super) fn duplicates(&self) -> Vec<(&Resource, &Resource)> {
        let mut seen: HashMap<_, &Resource> = HashMap::with_capacity(self.resources.len());
        let resources = self.resources.iter();
        let other =
            |resource| seen.insert(Resource::id(resource, &self.scope).key(), resource).map(|other| (other, resource));
        resources.filter_map(other).collect()
    }

    /// Returns the number of objects with each identity. The keys are hashes of the identities. Counts the objects
    /// again if they may have changed since the last count.
    fn indexed(&mut self) -> &mut HashMap<u64, u32> {
        let (resources, scope) = (&self.resources, &self.scope);
        self.index.get_or_insert_with(|| {
            let mut index = HashMap::with_capacity(resources.len());
            for resource in resources {
                *index.entry(hash(&resource.id(scope))).or_default() += 1;
            }
            index
        })
    }
}

fn hash(id: &Id<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.key().hash(&mut hasher);
    hasher.finish()
}
