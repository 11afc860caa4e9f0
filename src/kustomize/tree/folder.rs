//! A kustomize tree whose files are in a folder on disk.

use std::collections::HashSet;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use super::{Entry, MAX_FILE_BYTES, Source, Tree, TreePath, Unreadable};

/// The reason why a folder cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct FolderError {
    /// The folder that cannot be opened.
    pub path: PathBuf,
    /// The error of the operating system.
    pub source: io::Error,
}

impl Tree {
    /// Opens the folder at `path`. Its files are read on demand.
    ///
    /// # Errors
    ///
    /// If `path` does not exist, is not a folder, or cannot be accessed.
    pub fn folder(path: &Path) -> Result<Self, FolderError> {
        let failed = |source| FolderError { path: path.to_owned(), source };
        let root = fs::canonicalize(path).map_err(failed)?;
        if !root.is_dir() {
            return Err(failed(io::Error::from(io::ErrorKind::NotADirectory)));
        }
        let base = root.to_string_lossy().into_owned();
        Ok(Self::new(Folder { root, folders: RwLock::default() }, &base))
    }
}

struct Folder {
    root: PathBuf,
    /// A cache of folders that exist. It avoids repeated checks of the same parent folders when paths are resolved.
    folders: RwLock<HashSet<TreePath>>,
}

/// Maximum number of cached paths of folders. Each path needs a few hundred bytes. When the cache is full, it is
/// emptied.
const MAX_FOLDERS: usize = 5_000;

impl Folder {
    fn remember(&self, folder: &TreePath) {
        let mut folders = self.folders.write().unwrap_or_else(PoisonError::into_inner);
        if folders.len() >= MAX_FOLDERS {
            folders.clear();
        }
        folders.insert(folder.clone());
    }

    fn on_disk(&self, path: &TreePath) -> PathBuf {
        self.root.join(path.as_str())
    }
}

impl Source for Folder {
    fn entry(&self, path: &TreePath) -> Option<Entry> {
        if self.is_plain_folder(path) {
            return Some(Entry::Folder);
        }
        let place = self.on_disk(path);
        let metadata = fs::symlink_metadata(&place).ok()?;
        let entry = kind(&metadata).unwrap_or_else(|| {
            let target = fs::read_link(&place).unwrap_or_default();
            Entry::Link(target.to_string_lossy().into_owned())
        });
        if entry == Entry::Folder {
            self.remember(path);
        }
        Some(entry)
    }

    fn read(&self, path: &TreePath) -> Result<Arc<[u8]>, Unreadable> {
        let failed = |error: io::Error| Unreadable::System(error.to_string());
        let mut file = File::open(self.on_disk(path)).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        if size > MAX_FILE_BYTES {
            return Err(Unreadable::TooLarge);
        }
        // The file is read with one call, into its final buffer.
        let mut content: Arc<[u8]> = std::iter::repeat_n(0, size as usize).collect();
        let filled = Arc::get_mut(&mut content).map_or(Ok(0), |buffer| filled(&mut file, buffer)).map_err(failed)?;
        if size > 0 && filled == content.len() {
            return Ok(content);
        }
        // The file has become shorter, or its size is unknown, as in /proc.
        let mut content = content.get(..filled).unwrap_or_default().to_vec();
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut content).map_err(failed)?;
        if content.len() as u64 > MAX_FILE_BYTES {
            return Err(Unreadable::TooLarge);
        }
        Ok(content.into())
    }

    fn names(&self, path: &TreePath) -> Vec<String> {
        let entries = fs::read_dir(self.on_disk(path)).into_iter().flatten().flatten();
        // a name that is not UTF-8 cannot be written in YAML, so nothing can refer to it
        let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    fn is_plain_folder(&self, folder: &TreePath) -> bool {
        self.folders.read().unwrap_or_else(PoisonError::into_inner).contains(folder)
    }
}

/// Reads from a file until the buffer is full or the file ends, and returns the number of bytes read.
fn filled(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Returns the type of the file or folder that has this metadata; `None` for a link.
fn kind(metadata: &Metadata) -> Option<Entry> {
    let kind = metadata.file_type();
    if kind.is_symlink() {
        return None;
    }
    Some(match (kind.is_file(), kind.is_dir()) {
        (true, _) => Entry::File,
        (_, true) => Entry::Folder,
        _ => Entry::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_any_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree::folder(folder.path()).unwrap();
        for size in [0, 1, 100_000, MAX_FILE_BYTES as usize] {
            let content: Vec<u8> = (0..size).map(|at| at as u8).collect();
            fs::write(folder.path().join("file"), &content).unwrap();
            assert!(*tree.read(&"file".into()).unwrap() == *content, "{size}");
        }
        fs::write(folder.path().join("file"), vec![0; MAX_FILE_BYTES as usize + 1]).unwrap();
        assert_eq!(tree.read(&"file".into()), Err(Unreadable::TooLarge));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn files_without_a_size_are_read() {
        let tree = Tree::folder(Path::new("/proc/self")).unwrap();
        let status = tree.read(&"status".into()).unwrap();
        assert!(status.starts_with(b"Name:"));
    }
}
