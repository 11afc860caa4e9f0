//! A cache outside of the source tree, for programs and files that are slow to build. An entry never changes, because
//! its key depends on everything from which it is built.

use std::env;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{self, Path, PathBuf};

/// A folder in the cache of the tests. It contains one subfolder for each cache entry. The first test run that needs an
/// entry creates it, and later runs use it again.
pub struct Cache {
    folder: PathBuf,
}

/// An error that occurred while using the cache.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// None of the environment variables that can name the folder of the cache is set.
    #[error("there is no folder for the cache: set PORTCULLIS_CACHE, XDG_CACHE_HOME or HOME")]
    NoFolder,
    /// A file or folder of the cache could not be created, locked, moved or deleted.
    #[error("cache {path}: {source}")]
    Io {
        /// The path of the file or folder.
        path: PathBuf,
        source: io::Error,
    },
}

impl Cache {
    /// Opens the folder for `key` in the user's cache. Creates the folder if needed.
    pub fn open(key: &str) -> Result<Self, CacheError> {
        let folder = root().ok_or(CacheError::NoFolder)?.join("e2e").join(key);
        fs::create_dir_all(&folder).map_err(io_error_at(&folder))?;
        Ok(Self { folder })
    }

    /// Returns whether the cache contains the entry `name`.
    #[allow(dead_code, reason = "asked by the tests with real controllers")]
    pub fn has(&self, name: &str) -> bool {
        self.folder.join(name).is_dir()
    }

    /// Returns the path of the folder for the entry `name`. If the cache does not contain the entry, calls `make` with
    /// an empty temporary folder, in which `make` creates the files.
    ///
    /// If `make` succeeds, renames the temporary folder to its final name. A lock prevents two runs from creating
    /// entries at the same time.
    pub fn entry<E: From<CacheError>>(
        &self,
        name: &str,
        make: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        let entry = self.folder.join(name);
        if entry.is_dir() {
            return Ok(entry);
        }
        let _lock = self.lock()?;
        if !entry.is_dir() {
            let draft = self.draft(name)?;
            make(&draft)?;
            fs::rename(&draft, &entry).map_err(io_error_at(&entry))?;
        }
        Ok(entry)
    }

    /// Creates an empty folder in which an entry is built, and returns its path. Deletes the files that an interrupted
    /// run left in this folder.
    fn draft(&self, name: &str) -> Result<PathBuf, CacheError> {
        let draft = self.folder.join(format!("{name}.draft"));
        if draft.exists() {
            fs::remove_dir_all(&draft).map_err(io_error_at(&draft))?;
        }
        fs::create_dir(&draft).map_err(io_error_at(&draft))?;
        Ok(draft)
    }

    /// Locks the folder of the cache. The lock is released when the returned file is dropped, or when the process ends.
    fn lock(&self) -> Result<File, CacheError> {
        let path = self.folder.join("lock");
        let file = File::create(&path).map_err(io_error_at(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                eprintln!("e2e: waiting for another run that fills {}", self.folder.display());
                file.lock().map_err(io_error_at(&path))?;
            }
            Err(TryLockError::Error(source)) => return Err(io_error_at(&path)(source)),
        }
        Ok(file)
    }
}

/// Returns a cache key, which is an FNV-1a hash of `parts`. The hash of the standard library is not used, because it
/// may differ between Rust releases.
pub fn key(parts: &[&str]) -> String {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

/// Returns the path that an environment variable contains, if it is set. The path is made absolute, because `go` runs
/// in another folder.
pub fn path_from_env(variable: &str) -> Option<PathBuf> {
    let value = env::var_os(variable)?;
    path::absolute(value).ok()
}

fn root() -> Option<PathBuf> {
    path_from_env("PORTCULLIS_CACHE")
        .or_else(|| Some(path_from_env("XDG_CACHE_HOME")?.join("portcullis")))
        .or_else(|| Some(path_from_env("HOME")?.join(".cache").join("portcullis")))
}

fn io_error_at(path: &Path) -> impl FnOnce(io::Error) -> CacheError + use<> {
    let path = path.to_owned();
    move |source| CacheError::Io { path, source }
}
