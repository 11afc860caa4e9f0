//! A cache of parsed kustomization files, which several builds share.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::file::{BadFile, KustomizationFile, SharedFile};
use super::tree::{Tree, TreePath, Unreadable};

/// Default maximum number of kustomization files in a cache. When the cache is full, it is emptied. A parsed file needs
/// a few kilobytes of memory. A small limit is sufficient, because folders that are built one after another share most
/// of their files.
const MAX_FILES: usize = 1_000;
/// Maximum number of cached kustomization files for a command that reads a whole repository. The command reads each
/// file at least twice: first to find the roots, and then to build them.
const MAX_FILES_OF_REPOSITORY: usize = 10_000;
/// Maximum number of values that YAML aliases copy in a cached file. A file with more copied values is not cached,
/// because a cache with a thousand such files would need gigabytes.
const MAX_ALIASED: usize = 1_000;

/// A cache of parsed kustomization files, by path. With it, a file that several kustomizations use is usually parsed
/// only once.
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
    /// Creates a cache with a higher limit than the default, for a command that reads the kustomization files of a
    /// whole repository. Such a command reads each file at least twice, so the cache should have room for all of them.
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
