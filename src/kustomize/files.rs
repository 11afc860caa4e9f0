//! A cache of parsed kustomization files, shared by all roots of a run.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::file::{BadFile, KustomizationFile, SharedFile};
use super::tree::{Tree, TreePath, Unreadable};

/// Maximum number of parsed kustomization files in a cache of a server. A cached file needs a few kilobytes of memory.
/// When the cache is full, it is emptied. A small limit is sufficient, because folders that are built one after another
/// share most of their files.
const MAX_FILES: usize = 1_000;
/// Maximum number of cached files of a repository. A command reads each file at least twice: once to find the roots,
/// and once to build them. A server reads a file once for each root that uses it.
const MAX_FILES_OF_REPOSITORY: usize = 10_000;
/// Maximum number of values from aliases in a cached file. A file with more such values is not cached, because a
/// thousand such files would need gigabytes.
const MAX_ALIASED: usize = 1_000;

/// A cache of parsed kustomization files, shared by all roots of a run.
#[derive(Debug)]
pub struct Files {
    read: RwLock<HashMap<TreePath, Read>>,
    most: usize,
}

impl Default for Files {
    fn default() -> Self {
        Self { read: RwLock::default(), most: MAX_FILES }
    }
}

/// A parsed kustomization file, or the reason why it was not read.
type Read = Result<SharedFile, NotRead>;

/// The reason why a kustomization file was not read.
#[derive(Debug, Clone)]
pub enum NotRead {
    /// The content of the file is not a valid kustomization.
    Bad(BadFile),
    /// The file cannot be read from the tree.
    Unreadable(Unreadable),
}

impl Files {
    /// Creates a cache for all kustomization files of a repository. Each of these files is read several times.
    pub fn of_repository() -> Self {
        Self { most: MAX_FILES_OF_REPOSITORY, ..Self::default() }
    }

    /// Returns the parsed kustomization file at a path. Uses the cache if it contains the file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or if its content is invalid.
    pub fn kustomization(&self, tree: &Tree, path: &TreePath) -> Read {
        if let Some(read) = self.read.read().unwrap_or_else(PoisonError::into_inner).get(path) {
            return read.clone();
        }
        let read = match tree.read(path) {
            Ok(bytes) => KustomizationFile::read(path.clone(), &bytes).map(Arc::new).map_err(NotRead::Bad),
            // Not cached, because a later attempt may succeed.
            Err(unreadable) => return Err(NotRead::Unreadable(unreadable)),
        };
        if read.as_ref().is_ok_and(|file| file.aliased() > MAX_ALIASED) {
            return read;
        }
        let mut known = self.read.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= self.most {
            known.clear();
        }
        known.insert(path.clone(), read.clone());
        read
    }
}
