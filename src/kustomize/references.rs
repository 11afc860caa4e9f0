//! Resolves entries of a kustomization file to a file, a folder, or a remote resource.

use super::options::{Options, Restrictor, Version};
use super::remote::{Repository, is_http};
use super::tree::{Located, Lost, Tree, TreePath};

/// The folder of a kustomization that is being built. Entries of its kustomization file, such as `../base`, are
/// resolved relative to this folder. To detect cycles, `referrer` gives access to the folders that refer to this
/// folder, directly or indirectly.
#[derive(Debug, Clone, Copy)]
pub struct Loader<'a> {
    /// The folder that is being built.
    pub root: &'a TreePath,
    /// The loader of the folder that refers to this folder; `None` if the build starts at this folder.
    pub referrer: Option<&'a Loader<'a>>,
}

/// The reason why an entry of a kustomization file cannot be loaded as a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoFile {
    /// The entry of the kustomization file is a URL, so its file must be fetched. Contains the reason if fetching
    /// failed.
    Http(Option<String>),
    /// The entry of the kustomization file is a folder.
    Folder(TreePath),
    /// The entry of the kustomization file leads to a file that is neither in the folder of the kustomization nor below
    /// it.
    Restricted(TreePath),
    /// The entry of the kustomization file is a path that cannot be resolved.
    Lost(Lost),
    /// The entry of the kustomization file leads to a device, socket or pipe.
    Other,
}

/// The reason why an entry of a kustomization file is not a folder that can be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoFolder {
    /// The entry of the kustomization file is the empty string.
    Empty,
    /// The entry of the kustomization file is the address of a git repository, which was not fetched.
    Git {
        /// The folder to which the entry leads if it is read as a local path. `None` if there is no such folder.
        local: Option<TreePath>,
        /// The reason why fetching the folder from the repository failed. `None` if Portcullis did not try to fetch it.
        failure: Option<String>,
    },
    /// The entry of the kustomization file is an absolute path. kustomize does not allow absolute paths to folders.
    Absolute,
    /// The entry of the kustomization file has a path segment that contains `..` and other characters, such as `a..b`.
    /// Versions of kustomize after 5.8 reject such an entry.
    Ambiguous,
    /// The entry of the kustomization file is a path that cannot be resolved.
    Lost(Lost),
    /// The entry of the kustomization file leads to a file or a device instead of a folder. Contains the path of this
    /// file or device.
    File(TreePath),
    /// The entry of the kustomization file leads to a folder that is being built, or to a parent of such a folder.
    Ancestor {
        /// The folder to which the entry of the kustomization file refers.
        folder: TreePath,
        /// The folder that is being built. It is equal to `folder`, or inside `folder`.
        visited: TreePath,
    },
}

impl Loader<'_> {
    /// Resolves an entry of a kustomization file to the path of a file in the tree, as kustomize's `FileLoader.Load`
    /// does. If the entry is a URL and fetching is enabled, fetches the file.
    ///
    /// # Errors
    ///
    /// - If the entry does not lead to a file.
    /// - If `options` do not allow the kustomization to load the file.
    /// - If the entry is a URL, and fetching is disabled or fails.
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

    /// Resolves an entry of a kustomization file to the path of a folder in the tree, as kustomize's `FileLoader.New`
    /// does. If the entry is the address of a git repository and fetching is enabled, fetches the repository.
    ///
    /// # Errors
    ///
    /// - If the entry does not lead to a folder.
    /// - If the entry is a path that kustomize does not allow, such as an absolute path.
    /// - If the folder is being built, or contains a folder that is being built.
    /// - If the entry is the address of a git repository, and fetching is disabled or fails.
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

    /// Resolves `folder`, a path in a fetched repository, to a path in the tree. `top` is the path of the repository's
    /// top folder in the tree. Returns an error message if the folder does not exist, is outside of the repository, or
    /// is being built.
    fn folder_in(&self, tree: &Tree, top: &TreePath, folder: &str) -> Result<TreePath, String> {
        match tree.locate(top, folder) {
            Ok(Located::Folder(found)) if !found.is_within(top) => {
                Err(format!("{folder} is outside of the repository"))
            }
            Ok(Located::Folder(found)) if self.is_visited_within(&found) => Err(format!("{folder} is being built")),
            Ok(Located::Folder(found)) => Ok(found),
            _ => Err(format!("the repository has no folder {folder}")),
        }
    }

    /// Returns whether `folder` is being built, or contains a folder that is being built. The folders being built are
    /// the folder of this loader and the folders that refer to it.
    pub fn is_visited_within(&self, folder: &TreePath) -> bool {
        self.visited_within(folder).is_some()
    }

    /// Returns the first folder being built that is `candidate` or is inside `candidate`. Searches `root` first, then
    /// the folders that refer to `root`.
    fn visited_within(&self, candidate: &TreePath) -> Option<&TreePath> {
        if self.root.is_within(candidate) {
            return Some(self.root);
        }
        self.referrer.and_then(|referrer| referrer.visited_within(candidate))
    }

    /// Returns the chain of folders that leads to the folder of this loader. The first one is the folder for which
    /// kustomize was called. Each folder refers to the next one, and the folder of this loader is the last.
    pub fn chain(&self) -> Vec<TreePath> {
        let mut chain = self.referrer.map(Loader::chain).unwrap_or_default();
        chain.push(self.root.clone());
        chain
    }
}

fn is_ambiguous(entry: &str) -> bool {
    entry.split('/').any(|segment| segment != ".." && segment.contains(".."))
}
