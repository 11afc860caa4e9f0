//! Reads the results of building bases from a cache that several builds share, and adds new results to the cache.
//!
//! The cache is in [`base_cache`](super::base_cache).

use std::sync::Arc;

use super::accumulator::Accumulator;
use super::base_cache::{Base, Key};
use super::log::Folder;
use super::run::Run;
use crate::kustomize::references::Loader;
use crate::kustomize::tree::TreePath;

/// The state of a build before it builds a base. When the base is built, [`Run::end_base`] uses this state to determine
/// what the base added.
#[derive(Debug)]
pub(super) struct Pending {
    key: Key,
    /// The number of folders in `Run::folders` when the build began with this base. The folders that the build visits
    /// for the base come after them in this list.
    folders: usize,
    warnings: usize,
    spent: u64,
    read: usize,
}

impl Run<'_> {
    fn key(&self, folder: &TreePath) -> Key {
        (folder.clone(), self.beside.get())
    }

    /// Returns the cached result of a base, and adds its warnings and its folders to this build. `None` if the base is
    /// not cached, or if a custom schema is set. Also `None` if the base contains a folder that is being built, because
    /// the build must then report the cycle.
    pub(super) fn shared_base(&mut self, loader: &Loader<'_>) -> Option<Arc<Base>> {
        let base = self.bases.filter(|_| !self.has_schema)?.get(&self.key(loader.root))?;
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

    /// Prepares the build of the base in `folder`. Adds `folder` to the visited folders. Returns the state before the
    /// build of the base, for [`Run::end_base`].
    pub(super) fn begin_base(&mut self, folder: &TreePath) -> Pending {
        let key = self.key(folder);
        let (folders, warnings) = (self.folders.len(), self.warnings.len());
        self.folders.push(folder.clone());
        Pending { key, folders, warnings, spent: self.budget.spent(), read: self.read.get() }
    }

    /// Adds the result of building a base to the cache: the objects in `accumulator`, and the findings in `reports`.
    /// Other kustomizations that use the same base then need not build the base again.
    ///
    /// Does nothing in two cases, because other kustomizations may get a different result for the base:
    ///
    /// - The build of the base has errors, or its result cannot be determined.
    /// - A custom schema (`openapi`) is set.
    pub(super) fn end_base(&self, pending: Pending, accumulator: &Accumulator, reports: Folder) {
        let is_kept = !self.has_schema && reports.is_accepted();
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
