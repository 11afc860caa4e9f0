//! A cache outside of the source tree for what is slow to make and never changes under its key.

use std::env;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{self, Path, PathBuf};

/// A folder in which every entry is made once, by whichever run comes first.
pub struct Cache {
    folder: PathBuf,
}

/// Why the cache could not be used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// No variable names a folder.
    #[error("set PORTCULLIS_CACHE: neither it nor XDG_CACHE_HOME nor HOME says where to keep what the tests build")]
    Nowhere,
    /// The file system refused.
    #[error("cache {path}: {source}")]
    Io {
        /// What was read or written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Cache {
    /// Returns the part of the user's cache that belongs to `key`.
    pub fn open(key: &str) -> Result<Self, CacheError> {
        let folder = root().ok_or(CacheError::Nowhere)?.join("e2e").join(key);
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        Ok(Self { folder })
    }

    /// Returns whether the folder `name` is complete.
    #[allow(dead_code, reason = "asked by the tests with real controllers")]
    pub fn has(&self, name: &str) -> bool {
        self.folder.join(name).is_dir()
    }

    /// The folder `name`, filled by `make` unless it is there already.
    ///
    /// It appears under its name only when it is complete, and two runs never make it at once.
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
            fs::rename(&draft, &entry).map_err(at(&entry))?;
        }
        Ok(entry)
    }

    /// Returns an empty folder to work in. What an interrupted run left there is gone.
    fn draft(&self, name: &str) -> Result<PathBuf, CacheError> {
        let draft = self.folder.join(format!("{name}.draft"));
        if draft.exists() {
            fs::remove_dir_all(&draft).map_err(at(&draft))?;
        }
        fs::create_dir(&draft).map_err(at(&draft))?;
        Ok(draft)
    }

    /// Held until the file is dropped; the system releases it when the process dies.
    fn lock(&self) -> Result<File, CacheError> {
        let path = self.folder.join("lock");
        let file = File::create(&path).map_err(at(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                eprintln!("e2e: waiting for another run that fills {}", self.folder.display());
                file.lock().map_err(at(&path))?;
            }
            Err(TryLockError::Error(source)) => return Err(at(&path)(source)),
        }
        Ok(file)
    }
}

/// Returns a key that changes whenever one of `parts` does: FNV-1a, as the standard library's hash may differ between
/// releases.
pub fn key(parts: &[&str]) -> String {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

/// Returns the folder that a variable names, if it is set: absolute, as Go runs in a folder of its own.
pub fn folder_in(variable: &str) -> Option<PathBuf> {
    let value = env::var_os(variable)?;
    path::absolute(value).ok()
}

fn root() -> Option<PathBuf> {
    folder_in("PORTCULLIS_CACHE")
        .or_else(|| Some(folder_in("XDG_CACHE_HOME")?.join("portcullis")))
        .or_else(|| Some(folder_in("HOME")?.join(".cache").join("portcullis")))
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> CacheError + use<> {
    let path = path.to_owned();
    move |source| CacheError::Io { path, source }
}
