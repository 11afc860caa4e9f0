//! Kustomization files that were read, shared by all roots of a run.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::file::{BadFile, KustomizationFile, SharedFile};
use super::tree::{Tree, TreePath, Unreadable};

/// A file with its places takes some kilobytes; beyond this number the cache begins anew. Roots that stand beside one
/// another share most, so that more would help little.
const MOST_FILES: usize = 1_000;
/// A file of which anchors and aliases make more values is read again for each root that wants it: a thousand such files would
/// take gigabytes.
const MOST_ALIASED: usize = 1_000;

/// Kustomization files that were read, shared by all roots of a run.
#[derive(Debug, Default)]
pub struct Files {
    read: RwLock<HashMap<TreePath, Read>>,
}

/// What came of reading a file.
type Read = Result<SharedFile, NotRead>;

/// Why a kustomization file was not read.
#[derive(Debug, Clone)]
pub enum NotRead {
    /// It says nothing that can be understood.
    Bad(BadFile),
    /// Its bytes cannot be had.
    Unreadable(Unreadable),
}

impl Files {
    /// Returns the file at a path, read once.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn kustomization(&self, tree: &Tree, path: &TreePath) -> Read {
        if let Some(read) = self.read.read().unwrap_or_else(PoisonError::into_inner).get(path) {
            return read.clone();
        }
        let read = match tree.read(path) {
            Ok(bytes) => KustomizationFile::read(path.clone(), &bytes).map(Arc::new).map_err(NotRead::Bad),
            // another reader may have better luck
            Err(unreadable) => return Err(NotRead::Unreadable(unreadable)),
        };
        if read.as_ref().is_ok_and(|file| file.aliased() > MOST_ALIASED) {
            return read;
        }
        let mut known = self.read.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_FILES {
            known.clear();
        }
        known.insert(path.clone(), read.clone());
        read
    }
}
