//! A cache of bases that several roots of a run share.
//!
//! Hashes, references between objects and vars are computed at the root. So the result of a base depends on its own
//! files and on three properties of its referrer: the schema in use (`openapi`), the annotations with the origin of
//! objects (`buildMetadata` of the root), and the folders being built, because a folder must not contain itself.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::log::Folder;
use super::run::Run;
use super::target::Accumulator;
use crate::kustomize::references::Loader;
use crate::kustomize::schema::{Preferred, Schema};
use crate::kustomize::tree::TreePath;

/// Maximum number of cached objects, of some kilobytes each; the cache is then emptied.
const MAX_OBJECTS: usize = 50_000;

/// The cached result of building a base.
#[derive(Debug)]
pub(super) struct Base {
    /// The accumulated objects.
    pub(super) accumulator: Accumulator,
    /// The charged size; see [`Budget`](super::budget::Budget).
    pub(super) bytes: u64,
    /// The size of the files that were read for it.
    read: usize,
    /// The folders that it was built from, including its own.
    folders: Vec<TreePath>,
    warnings: Vec<String>,
    beside: Option<Preferred>,
    /// The findings and reasons that were reported about it.
    pub(super) reports: Folder,
}

/// The folder, the schema in use, and the preferred built-in schema.
type Key = (TreePath, usize, Option<Preferred>);

/// A cache of built bases.
#[derive(Debug, Default)]
pub(super) struct Bases {
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    bases: HashMap<Key, Arc<Base>>,
    objects: usize,
}

impl Bases {
    fn get(&self, key: &Key) -> Option<Arc<Base>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).bases.get(key).cloned()
    }

    fn put(&self, key: Key, base: Base) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let objects = base.accumulator.map.resources().len() + 1;
        if known.objects + objects > MAX_OBJECTS {
            *known = Known::default();
        }
        known.objects += objects;
        known.bases.insert(key, Arc::new(base));
    }
}

/// A base that is being built, and cached afterwards if it can be shared.
#[derive(Debug)]
pub(super) struct Pending {
    key: Key,
    /// Number of folders that were visited before it.
    folders: usize,
    warnings: usize,
    spent: u64,
    read: usize,
    has_schema: bool,
}

impl Run<'_> {
    fn key(&self, folder: &TreePath) -> Key {
        (folder.clone(), std::ptr::from_ref::<Schema>(&self.schema).addr(), self.beside.get())
    }

    /// Returns the cached result of a base, if it is valid for this root.
    pub(super) fn shared_base(&mut self, loader: &Loader<'_>) -> Option<Arc<Base>> {
        let base = self.bases?.get(&self.key(loader.root))?;
        let is_being_built =
            |folder: &TreePath| loader.referrer.is_some_and(|referrer| referrer.is_visited_within(folder));
        if base.folders.iter().any(is_being_built) {
            return None;
        }
        self.beside.set(base.beside);
        self.folders.extend(base.folders.iter().cloned());
        self.warnings.extend(base.warnings.iter().cloned());
        self.read.set(self.read.get() + base.read);
        Some(base)
    }

    /// Begins building a base.
    pub(super) fn begin_base(&mut self, folder: &TreePath) -> Pending {
        let key = self.key(folder);
        let (folders, warnings) = (self.folders.len(), self.warnings.len());
        self.folders.push(folder.clone());
        Pending {
            key,
            folders,
            warnings,
            spent: self.budget.spent(),
            read: self.read.get(),
            has_schema: self.has_schema,
        }
    }

    /// Caches the result of a base. Does nothing if it has errors or unknown parts, which may be due to its referrers,
    /// or if it sets a schema, which affects more than the base.
    pub(super) fn end_base(&self, pending: Pending, accumulator: &Accumulator, reports: Folder) {
        let is_kept = pending.has_schema == self.has_schema && reports.is_accepted();
        let Some(bases) = self.bases.filter(|_| is_kept) else { return };
        let base = Base {
            accumulator: accumulator.clone(),
            bytes: self.budget.spent().saturating_sub(pending.spent),
            read: self.read.get() - pending.read,
            folders: self.folders[pending.folders..].to_vec(),
            warnings: self.warnings[pending.warnings..].to_vec(),
            beside: self.beside.get(),
            reports,
        };
        bases.put(pending.key, base);
    }
}
