//! Fetches git repositories and files for `portcullis build --fetch`.
//!
//! Repositories are cloned with depth one into a cache on disk, by URL and commit. Files are fetched in every build.
//! The webhooks never fetch repositories or files. A tree fetches them only if [`Tree::with_fetch`] enables it.
//!
//! [`Tree::with_fetch`]: crate::kustomize::tree::Tree::with_fetch

mod checkout;
mod client;
mod git;
mod transport;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ring::digest::{SHA256, digest};

use crate::kustomize::remote::Repository;
use crate::kustomize::tree::{Fetch, MAX_FILE_BYTES, TreePath};
use client::Client;

/// The name of the folder with git repositories in the cache.
const REPOSITORIES: &str = "git";
/// The name of the folder in the cache for files that were fetched individually, not as part of a repository.
const FILES: &str = "files";

/// The reason why fetching from remote servers is not possible.
#[derive(Debug, thiserror::Error)]
pub enum RemotesError {
    /// There is no folder for the cache, because neither `XDG_CACHE_HOME` nor `HOME` is set.
    #[error("there is no folder for fetched repositories: set XDG_CACHE_HOME or HOME")]
    NoCache,
    /// The cache or the HTTP client cannot be set up.
    #[error("{0}")]
    System(#[from] std::io::Error),
}

/// A fetcher of the git repositories and files that kustomizations refer to by URL. It stores them in a cache on disk.
/// It returns paths relative to `/`, so all other paths in the kustomize build must be relative to `/` too.
pub struct Remotes {
    cache: PathBuf,
    client: Arc<Client>,
    /// Results of the fetches in this process, by URL and git reference. Each repository and file is fetched only once,
    /// so all parts of a build use the same content.
    known: Mutex<HashMap<String, Result<TreePath, String>>>,
}

impl Remotes {
    /// Creates a fetcher with the user's cache. The cache is the folder `portcullis/remotes` in `$XDG_CACHE_HOME`, or
    /// in `$HOME/.cache`.
    ///
    /// # Errors
    ///
    /// Fails if neither variable is set, or if the folder or the HTTP client cannot be created.
    pub fn of_user() -> Result<Self, RemotesError> {
        let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
        Self::new(&cache.ok_or(RemotesError::NoCache)?.join("portcullis").join("remotes"))
    }

    /// Creates a fetcher that uses the folder `cache` as its cache. Creates the folder if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the folder or the HTTP client cannot be created.
    pub fn new(cache: &Path) -> Result<Self, RemotesError> {
        std::fs::create_dir_all(cache)?;
        Ok(Self { cache: cache.canonicalize()?, client: Arc::new(Client::new()?), known: Mutex::default() })
    }

    /// Returns the path or the error for `key`, such as a URL. Calls `fetch` when `key` is first used in this process,
    /// and stores the result for later calls.
    fn once(&self, key: String, fetch: impl FnOnce() -> Result<PathBuf, String>) -> Result<TreePath, String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let fetched = known.entry(key).or_insert_with(|| fetch().map(|path| tree_path(&path)));
        fetched.clone()
    }
}

impl Fetch for Remotes {
    fn repository(&self, repository: &Repository) -> Result<TreePath, String> {
        let Repository { host, path, reference, .. } = repository;
        self.once(format!("{host}{path}?{reference}"), || {
            git::fetch(&format!("{host}{path}"), reference, &self.cache.join(REPOSITORIES), &self.client)
        })
    }

    fn file(&self, url: &str) -> Result<TreePath, String> {
        self.once(url.to_owned(), || {
            let content = self.client.file(url, MAX_FILE_BYTES)?;
            checkout::file(&self.cache.join(FILES).join(hash(&content)), &content)
        })
    }

    fn repository_of(&self, folder: &TreePath) -> Option<TreePath> {
        let repositories = tree_path(&self.cache.join(REPOSITORIES));
        let below = folder.as_str().strip_prefix(repositories.as_str())?.strip_prefix('/')?;
        let mut names = below.splitn(3, '/');
        Some(repositories.join(names.next()?).join(names.next()?))
    }
}

/// Converts an absolute path to a path in a kustomize tree whose root is `/`.
fn tree_path(path: &Path) -> TreePath {
    TreePath::from(path.to_string_lossy().trim_start_matches('/'))
}

/// Returns the first half of the SHA-256 hash of `content` in hexadecimal digits, for the name of a folder or file.
fn hash(content: &[u8]) -> String {
    digest(&SHA256, content).as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
