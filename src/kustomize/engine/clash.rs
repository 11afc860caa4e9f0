//! Detects objects that get the same identity when they move to another namespace. It counts the objects with each
//! identity instead of comparing all pairs of objects.

use std::collections::HashMap;

use super::resmap::ResMap;
use super::resource::Resource;
use crate::kustomize::identity::Scope;

/// A counter of the objects with each identity. It detects whether an object gets the identity of another object when
/// it moves to another namespace.
#[derive(Debug)]
pub(super) struct Clash {
    counts: HashMap<String, u32>,
    keys: Vec<String>,
    scope: Scope,
}

impl Clash {
    /// Creates a counter for the objects in `map`. It counts how many objects have the same group, version, kind, name
    /// and namespace.
    pub(super) fn new(map: &ResMap) -> Self {
        let keys: Vec<String> = map.resources().iter().map(|resource| key(resource, &map.scope)).collect();
        let mut counts = HashMap::with_capacity(keys.len());
        keys.iter().for_each(|key| *counts.entry(key.clone()).or_default() += 1);
        Self { counts, keys, scope: map.scope.clone() }
    }

    /// Records the identity of the object at index `at` after a change. Returns whether another object has the same
    /// identity.
    pub(super) fn moved(&mut self, at: usize, resource: &Resource) -> bool {
        let new = key(resource, &self.scope);
        let Some(old) = self.keys.get_mut(at) else { return false };
        if *old != new {
            if let Some(count) = self.counts.get_mut(old) {
                *count -= 1;
            }
            *self.counts.entry(new.clone()).or_default() += 1;
            old.clone_from(&new);
        }
        self.counts.get(&new).is_some_and(|count| *count > 1)
    }
}

fn key(resource: &Resource, scope: &Scope) -> String {
    let id = resource.id(scope);
    [id.gvk.group, id.gvk.version, id.gvk.kind, id.name, id.effective_namespace()].join("\n")
}
