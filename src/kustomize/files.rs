//! A cache of parsed kustomization files, which several builds share.

use std::sync::Arc;

use super::file::{BadFile, KustomizationFile, NAMES, SharedFile};
use super::tree::{Tree, TreePath, Unreadable};
use crate::cache::Lru;

/// Default maximum total size of the kustomization files in a cache, in bytes. A parsed file needs about twenty times
/// its size. A small limit is sufficient, because folders that are built one after another share most of their files.
const MAX_BYTES: u64 = 64 << 10;
/// Number of bytes that the cache counts for each file in addition to its text.
const OVERHEAD: usize = 100;
/// Maximum number of values that YAML aliases copy in a cached file. A file with more copied values is not cached,
/// because a cache with a thousand such files would need gigabytes.
const MAX_ALIASED: usize = 1_000;

/// A cache of parsed kustomization files, by path. A file that several kustomizations use is usually parsed only once.
#[derive(Debug)]
pub struct Files(Lru<TreePath, Read>);

impl Default for Files {
    fn default() -> Self {
        Self::within(MAX_BYTES)
    }
}

/// A parsed kustomization file, or the reason why it was not read.
type Read = Result<SharedFile, NotRead>;

/// The reason why a kustomization file was not read.
#[derive(Debug, Clone)]
pub enum NotRead {
    /// The content of the file cannot be parsed as YAML.
    Bad(BadFile),
    /// The file cannot be read from the tree.
    Unreadable(Unreadable),
}

impl Files {
    /// Creates a cache for files with a total size of at most `max_bytes`. When a new file does not fit, the least
    /// recently used files are removed.
    pub fn within(max_bytes: u64) -> Self {
        Self(Lru::new(max_bytes, usize::MAX))
    }

    /// Returns the parsed kustomization file at `path`, from the cache or from `tree`. All calls must use trees with
    /// the same kustomization files, because the key of the cache is only the path.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or cannot be parsed as YAML. Invalid fields are not errors of this function: they
    /// are in [`KustomizationFile::faults`].
    pub fn kustomization(&self, tree: &Tree, path: &TreePath) -> Read {
        if let Some(read) = self.0.get(path) {
            return read;
        }
        // An unreadable file is not cached, because a later attempt may succeed.
        let bytes = tree.read(path).map_err(NotRead::Unreadable)?;
        let read = KustomizationFile::read(path.clone(), &bytes).map(Arc::new).map_err(NotRead::Bad);
        if read.as_ref().is_ok_and(|file| file.aliased() > MAX_ALIASED) {
            return read;
        }
        self.0.insert(path.clone(), read.clone(), bytes.len() + OVERHEAD);
        read
    }

    /// Removes the kustomization file of a folder from the cache.
    pub fn forget(&self, folder: &TreePath) {
        NAMES.iter().for_each(|name| self.0.remove(&folder.join(name)));
    }
}
