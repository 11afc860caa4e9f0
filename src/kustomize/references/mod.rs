//! Resolves entries of a kustomization file to a file, a folder, or a remote resource.

mod remote;

pub use remote::{Repository, is_git, is_http};

use super::options::{Options, Restrictor, Version};
use super::tree::{Located, Lost, Tree, TreePath};

/// A folder that is being built, to which its entries are relative, with the folders that refer to it.
#[derive(Debug, Clone, Copy)]
pub struct Loader<'a> {
    /// The folder that is built.
    pub root: &'a TreePath,
    /// The folder that refers to this one.
    pub referrer: Option<&'a Loader<'a>>,
}

/// The reason why an entry is not a file that can be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoFile {
    /// The entry is a URL, which must be fetched; contains the reason if fetching failed.
    Http(Option<String>),
    /// The entry is a folder.
    Folder(TreePath),
    /// The entry is a file that is neither in the folder of the kustomization nor below it.
    Restricted(TreePath),
    /// The entry is a path that cannot be resolved.
    Lost(Lost),
    /// The entry is a device, socket or pipe.
    Other,
}

/// The reason why an entry is not a folder that can be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoFolder {
    /// The entry is the empty string.
    Empty,
    /// The entry is the address of a git repository, which was not fetched.
    Git {
        /// The existing folder with the same name, if any.
        local: Option<TreePath>,
        /// Why fetching failed, if it was tried.
        failure: Option<String>,
    },
    /// The entry is an absolute path, which kustomize does not allow for folders.
    Absolute,
    /// The entry has a name that contains `..` among other characters, which kustomize rejects after 5.8.
    Ambiguous,
    /// The entry is a path that cannot be resolved.
    Lost(Lost),
    /// The entry is a file.
    File(TreePath),
    /// The entry is a folder that is being built, or a parent of one.
    Ancestor {
        /// The folder that the entry names.
        folder: TreePath,
        /// The folder that is being built: the folder itself or one in it.
        visited: TreePath,
    },
}

impl Loader<'_> {
    /// Resolves an entry to a file (`FileLoader.Load`).
    ///
    /// # Errors
    ///
    /// If it is not a file.
    pub fn file(&self, tree: &Tree, entry: &str, options: &Options) -> Result<TreePath, NoFile> {
        if is_http(entry) {
            return match tree.fetch() {
                Some(fetch) => fetch.file(entry).map_err(|why| NoFile::Http(Some(why))),
                None => Err(NoFile::Http(None)),
            };
        }
        match tree.locate(self.root, entry) {
            Ok(Located::File(path)) => {
                let within = path.parent().is_some_and(|folder| folder.is_within(self.root));
                let allowed = within || options.restrictor == Restrictor::None;
                if allowed { Ok(path) } else { Err(NoFile::Restricted(path)) }
            }
            Ok(Located::Folder(path)) => Err(NoFile::Folder(path)),
            Ok(Located::Other(_)) => Err(NoFile::Other),
            Err(lost) => Err(NoFile::Lost(lost)),
        }
    }

    /// Resolves an entry to a folder (`FileLoader.New`).
    ///
    /// # Errors
    ///
    /// If it is not a folder, or is already being built.
    pub fn folder(&self, tree: &Tree, entry: &str, options: &Options) -> Result<TreePath, NoFolder> {
        if entry.is_empty() {
            return Err(NoFolder::Empty);
        }
        if let Some(repository) = Repository::of(entry) {
            let fetched = tree.fetch().map(|fetch| fetch.repository(&repository));
            let failure = match fetched.map(|top| top.and_then(|top| self.folder_in(tree, &top, &repository.folder))) {
                Some(Ok(folder)) => return Ok(folder),
                Some(Err(failure)) => Some(failure),
                None => None,
            };
            let local = match tree.locate(self.root, entry) {
                Ok(Located::Folder(path)) => Some(path),
                _ => None,
            };
            return Err(NoFolder::Git { local, failure });
        }
        if entry.starts_with('/') {
            return Err(NoFolder::Absolute);
        }
        if options.version > Version::NEWEST_WITHOUT_AMBIGUITY && is_ambiguous(entry) {
            return Err(NoFolder::Ambiguous);
        }
        match tree.locate(self.root, entry) {
            Ok(Located::Folder(folder)) if tree.leaves_repository(self.root, &folder) => {
                Err(NoFolder::Lost(Lost::Outside { above: false }))
            }
            Ok(Located::Folder(folder)) => match self.visited_within(&folder) {
                Some(visited) => Err(NoFolder::Ancestor { folder, visited: visited.clone() }),
                None => Ok(folder),
            },
            Ok(Located::File(path) | Located::Other(path)) => Err(NoFolder::File(path)),
            Err(lost) => Err(NoFolder::Lost(lost)),
        }
    }

    /// Resolves `folder` in a fetched repository, whose top folder in the tree is `top`.
    fn folder_in(&self, tree: &Tree, top: &TreePath, folder: &str) -> Result<TreePath, String> {
        match tree.locate(top, folder) {
            Ok(Located::Folder(found)) if !found.is_within(top) => Err(format!("{folder} leads out of the repository")),
            Ok(Located::Folder(found)) if self.is_visited_within(&found) => Err(format!("{folder} is being built")),
            Ok(Located::Folder(found)) => Ok(found),
            _ => Err(format!("the repository has no folder {folder}")),
        }
    }

    /// Returns whether this folder, or a folder that led to it, is `folder` or inside it.
    pub fn is_visited_within(&self, folder: &TreePath) -> bool {
        self.visited_within(folder).is_some()
    }

    /// Returns the closest folder being built that is `candidate` or inside it.
    fn visited_within(&self, candidate: &TreePath) -> Option<&TreePath> {
        if self.root.is_within(candidate) {
            return Some(self.root);
        }
        self.referrer.and_then(|referrer| referrer.visited_within(candidate))
    }

    /// Returns the folders from the root to this folder.
    pub fn chain(&self) -> Vec<TreePath> {
        let mut chain = self.referrer.map(Loader::chain).unwrap_or_default();
        chain.push(self.root.clone());
        chain
    }
}

fn is_ambiguous(entry: &str) -> bool {
    entry.split('/').any(|segment| segment != ".." && segment.contains(".."))
}
