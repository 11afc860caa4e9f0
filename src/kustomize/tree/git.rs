//! A file tree for a revision of a git repository. The files are read from git's object database, without a checkout.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use gix::ObjectId;
use gix::objs::tree::EntryKind;
use gix::traverse::tree::recorder::Entry as Listed;

use super::{Entry, MAX_FILE_BYTES, Source, Tree, TreePath, Unreadable};

/// The hint at the end of errors about revisions of shallow clones, which CI systems check out by default.
const SHALLOW: &str = "; the clone is shallow: fetch its history, for example with `git fetch --unshallow`";

/// The reason why a revision cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{subject}: {reason}")]
pub struct GitError {
    /// The unreadable item: the path of the repository or the name of the revision.
    pub subject: String,
    /// The error of the git library.
    pub reason: String,
}

impl GitError {
    fn of(subject: &str, error: impl std::error::Error) -> Self {
        let mut reason = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            // gix' outer errors seldom contain the reason. The innermost error does, unless it is only a name such as
            // NotFound.
            reason = Some(error.to_string()).filter(|text| text.contains(' ')).unwrap_or(reason);
            cause = error.source();
        }
        Self { subject: subject.to_owned(), reason }
    }
}

/// A git repository on disk.
pub struct Repository {
    repository: gix::Repository,
}

impl Repository {
    /// Opens the repository that contains a folder.
    ///
    /// # Errors
    ///
    /// If the folder is in no repository, or the repository cannot be opened.
    pub fn discover(folder: &Path) -> Result<Self, GitError> {
        let repository = gix::discover(folder).map_err(|error| GitError::of(&folder.display().to_string(), error))?;
        Ok(Self { repository })
    }

    /// Returns the folder of the checkout; `None` for a bare repository.
    pub fn folder(&self) -> Option<PathBuf> {
        self.repository.workdir().map(Path::to_owned)
    }

    /// Reads the list of files of a revision, such as `HEAD~2`, a branch, a tag or an abbreviated hash.
    ///
    /// # Errors
    ///
    /// If the revision does not exist, or if one of its objects cannot be read. For example, shallow clones do not
    /// contain the objects of older revisions.
    pub fn revision(&self, name: &str) -> Result<Revision, GitError> {
        let files = self.files(name).map_err(|error| {
            let hint = if self.repository.is_shallow().unwrap_or_default() { SHALLOW } else { "" };
            GitError { reason: error.reason + hint, ..error }
        })?;
        let mut nodes = HashMap::from([(TreePath::root(), Node::Folder(BTreeSet::new()))]);
        for file in files {
            let path = TreePath::from(String::from_utf8_lossy(&file.filepath).as_ref());
            let node = match file.mode.kind() {
                EntryKind::Link => Node::Link(file.oid),
                // A submodule, whose files are in another repository.
                EntryKind::Commit | EntryKind::Tree => Node::Folder(BTreeSet::new()),
                EntryKind::Blob | EntryKind::BlobExecutable => Node::File(file.oid),
            };
            add(&mut nodes, path, node);
        }
        Ok(Revision { repository: Mutex::new(self.repository.clone()), nodes })
    }

    fn files(&self, name: &str) -> Result<Vec<Listed>, GitError> {
        let object = self.repository.rev_parse_single(name).map_err(|error| GitError::of(name, error))?;
        let object = object.object().map_err(|error| GitError::of(name, error))?;
        let tree = object.peel_to_tree().map_err(|error| GitError::of(name, error))?;
        tree.traverse().breadthfirst.files().map_err(|error| GitError::of(name, error))
    }
}

/// Adds `node` at `path` to `nodes`. Also adds the parent folders that are missing, and lists each new node in its
/// parent folder.
fn add(nodes: &mut HashMap<TreePath, Node>, path: TreePath, node: Node) {
    let mut below = path.clone();
    while let Some(parent) = below.parent() {
        let is_known = nodes.contains_key(&parent);
        let folder = nodes.entry(parent.clone()).or_insert_with(|| Node::Folder(BTreeSet::new()));
        if let Node::Folder(names) = folder {
            names.insert(below.name().to_owned());
        }
        if is_known {
            break;
        }
        below = parent;
    }
    nodes.insert(path, node);
}

/// The files of a revision. Their contents are read on demand.
pub struct Revision {
    repository: Mutex<gix::Repository>,
    nodes: HashMap<TreePath, Node>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    File(ObjectId),
    Link(ObjectId),
    Folder(BTreeSet<String>),
}

impl Revision {
    /// Returns the paths of the files and links that differ between this revision and `other`. These include paths that
    /// exist in only one of the two revisions.
    pub fn changed_files(&self, other: &Self) -> BTreeSet<TreePath> {
        let differs = |nodes: &HashMap<TreePath, Node>, (path, node): (&TreePath, &Node)| {
            let is_changed = !matches!(node, Node::Folder(_)) && nodes.get(path) != Some(node);
            is_changed.then(|| path.clone())
        };
        let own = self.nodes.iter().filter_map(|node| differs(&other.nodes, node));
        own.chain(other.nodes.iter().filter_map(|node| differs(&self.nodes, node))).collect()
    }

    /// Converts the revision to a tree, whose root has the absolute path `/`.
    pub fn into_tree(self) -> Tree {
        Tree::new(self, "/")
    }

    fn content(&self, id: ObjectId) -> Result<Vec<u8>, String> {
        let repository = self.repository.lock().unwrap_or_else(PoisonError::into_inner);
        let object = repository.find_object(id).map_err(|error| GitError::of(&id.to_string(), error).to_string())?;
        Ok(object.detach().data)
    }
}

impl Source for Revision {
    fn entry(&self, path: &TreePath) -> Option<Entry> {
        Some(match self.nodes.get(path)? {
            Node::File(_) => Entry::File,
            Node::Folder(_) => Entry::Folder,
            Node::Link(id) => {
                let target = self.content(*id).unwrap_or_default();
                Entry::Link(String::from_utf8_lossy(&target).into_owned())
            }
        })
    }

    fn read(&self, path: &TreePath) -> Result<Arc<[u8]>, Unreadable> {
        let Some(Node::File(id)) = self.nodes.get(path) else {
            return Err(Unreadable::System(format!("{path} is not a file of the revision")));
        };
        let content = self.content(*id).map_err(Unreadable::System)?;
        if content.len() as u64 > MAX_FILE_BYTES {
            return Err(Unreadable::TooLarge);
        }
        Ok(content.into())
    }

    fn names(&self, path: &TreePath) -> Vec<String> {
        match self.nodes.get(path) {
            Some(Node::Folder(names)) => names.iter().cloned().collect(),
            _ => Vec::new(),
        }
    }
}
