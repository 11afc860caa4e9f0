//! Writes fetched repositories and files to disk.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::kustomize::tree::{Entry, Repository, Tree, TreePath};

/// Maximum total size of all files in a repository, in bytes. The limit keeps a large or malicious repository from
/// filling the disk.
const MAX_BYTES: u64 = 1 << 30;
/// Maximum number of files in a repository.
const MAX_FILES: usize = 100_000;

/// Writes the files of a commit into the folder `into`. `repository` is the folder of the git repository with the
/// commit, and `commit` is its id. The folder `into` appears only when it is complete. Submodules become empty folders.
/// Fails if the commit cannot be read or written, or exceeds the limits.
pub(super) fn commit(repository: &Path, commit: &str, into: &Path) -> Result<(), String> {
    let opened = Repository::discover(repository).and_then(|repository| repository.revision(commit));
    let tree = opened.map_err(|error| error.to_string())?.into_tree();
    let partial = partial(into);
    let mut writer = Writer { tree: &tree, bytes: MAX_BYTES, files: MAX_FILES };
    let written = writer.folder(&TreePath::root(), &partial);
    let placed = written.and_then(|()| place(&partial, into).map_err(|error| failed(into, error)));
    if placed.is_err() {
        drop(fs::remove_dir_all(&partial));
    }
    placed
}

/// Writes a file atomically, and returns its path.
pub(super) fn file(path: &Path, content: &[u8]) -> Result<PathBuf, String> {
    let partial = partial(path);
    let folder = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&partial, content));
    written.and_then(|()| fs::rename(&partial, path)).map_err(|error| failed(path, error))?;
    Ok(path.to_owned())
}

/// Returns a path next to `path` for temporary content. No other process or call uses the same path.
pub(super) fn partial(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{number}.partial", std::process::id()));
    PathBuf::from(name)
}

/// Moves the finished folder `partial` to its final path `into`. If `into` already exists, because another process has
/// created it, deletes `partial`.
fn place(partial: &Path, into: &Path) -> io::Result<()> {
    match fs::rename(partial, into) {
        Err(_) if into.is_dir() => fs::remove_dir_all(partial),
        renamed => renamed,
    }
}

fn failed(path: &Path, error: impl std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

/// A writer that copies the files of a git commit to disk. It fails if the commit has more bytes or files than the
/// maximum.
struct Writer<'t> {
    tree: &'t Tree,
    /// The number of bytes that may still be written.
    bytes: u64,
    /// The number of files, links and folders that may still be written.
    files: usize,
}

impl Writer<'_> {
    fn folder(&mut self, folder: &TreePath, into: &Path) -> Result<(), String> {
        fs::create_dir_all(into).map_err(|error| failed(into, error))?;
        for name in self.tree.names(folder) {
            self.entry(&folder.join(&name), &into.join(&name))?;
        }
        Ok(())
    }

    fn entry(&mut self, path: &TreePath, into: &Path) -> Result<(), String> {
        let exceeded = || format!("the repository has more than {MAX_BYTES} bytes or {MAX_FILES} files");
        self.files = self.files.checked_sub(1).ok_or_else(exceeded)?;
        match self.tree.entry(path) {
            Some(Entry::Folder) => return self.folder(path, into),
            Some(Entry::Link(target)) => symlink(target, into).map_err(|error| failed(into, error))?,
            Some(Entry::File) => {
                // A file that is too large to be read is not a manifest, and is omitted.
                let Ok(content) = self.tree.read(path) else { return Ok(()) };
                self.bytes = self.bytes.checked_sub(content.len() as u64).ok_or_else(exceeded)?;
                fs::write(into, &*content).map_err(|error| failed(into, error))?;
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kustomize::tree::Memory;

    fn written(bytes: u64, files: usize) -> Result<(), String> {
        let memory = Memory::new().file("a/b.yaml", "12345").link("c", "a/b.yaml");
        let tree = Tree::new(memory, "/");
        let folder = tempfile::tempdir().unwrap();
        let written = Writer { tree: &tree, bytes, files }.folder(&TreePath::root(), folder.path());
        let copied = fs::read_to_string(folder.path().join("c")).ok();
        assert_eq!(copied.as_deref() == Some("12345"), written.is_ok());
        written
    }

    #[test]
    fn refuses_repositories_beyond_the_limits() {
        assert_eq!(written(5, 3), Ok(()));
        for (bytes, files) in [(4, 3), (5, 2)] {
            assert!(written(bytes, files).unwrap_err().contains("the repository has more than"));
        }
    }
}
