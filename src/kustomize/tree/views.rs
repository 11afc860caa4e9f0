//! Trees that are views of another tree: with a limit on the bytes to read, with a replaced file, or without some files
//! and folders.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Entry, Source, Tree, TreePath, Unreadable, cost};

impl Tree {
    /// Returns a tree with the same files, and a limit on the total [`cost`] of all reads. The cost of a read is the
    /// size of the file, plus a constant if the file contains YAML aliases. A read fails if the total would exceed
    /// `bytes`.
    #[must_use]
    pub fn within(self: &Arc<Self>, bytes: u64) -> Self {
        self.over(Metered { tree: Arc::clone(self), left: AtomicU64::new(bytes), most: bytes })
    }

    /// Returns a tree with the same files, except that the file at `path` has the content `content`.
    #[must_use]
    pub fn with_file(self: &Arc<Self>, path: TreePath, content: Vec<u8>) -> Self {
        Self::new(Edited { tree: Arc::clone(self), path, content: content.into() }, &self.base)
    }

    /// Returns a tree with the same content, but without the files, folders and links for which `hides` returns `true`.
    /// These can be, for example, files that an artifact excludes.
    #[must_use]
    pub fn without(self: &Arc<Self>, hides: impl Fn(&TreePath, &Entry) -> bool + Send + Sync + 'static) -> Self {
        self.over(Filtered { tree: Arc::clone(self), hides: Box::new(hides) })
    }

    /// Returns a tree that has the same root, but reads its files from `source`.
    fn over(&self, source: impl Source + 'static) -> Self {
        let Self { base, weight, kustomizations, fetch, .. } = self;
        let (weight, kustomizations) = (*weight, *kustomizations);
        Self { source: Box::new(source), base: base.clone(), weight, kustomizations, fetch: fetch.clone() }
    }
}

/// A view of a tree with a limit on the bytes to read.
struct Metered {
    tree: Arc<Tree>,
    left: AtomicU64,
    most: u64,
}

impl Source for Metered {
    fn entry(&self, path: &TreePath) -> Option<Entry> {
        self.tree.entry(path)
    }

    fn read(&self, path: &TreePath) -> Result<Arc<[u8]>, Unreadable> {
        let content = self.tree.read(path)?;
        let cost = cost(&content);
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(cost));
        taken.map(|_| content).map_err(|_| Unreadable::TooMuch(self.most))
    }

    fn names(&self, path: &TreePath) -> Vec<String> {
        self.tree.names(path)
    }

    fn is_plain_folder(&self, folder: &TreePath) -> bool {
        self.tree.source.is_plain_folder(folder)
    }
}

/// A view of a tree in which the content of one file is replaced.
struct Edited {
    tree: Arc<Tree>,
    path: TreePath,
    content: Arc<[u8]>,
}

impl Source for Edited {
    fn entry(&self, path: &TreePath) -> Option<Entry> {
        self.tree.entry(path)
    }

    fn read(&self, path: &TreePath) -> Result<Arc<[u8]>, Unreadable> {
        if *path == self.path { Ok(Arc::clone(&self.content)) } else { self.tree.read(path) }
    }

    fn names(&self, path: &TreePath) -> Vec<String> {
        self.tree.names(path)
    }

    fn is_plain_folder(&self, folder: &TreePath) -> bool {
        self.tree.source.is_plain_folder(folder)
    }
}

/// A function that returns whether a view hides the file, folder or link at a path.
type Hides = Box<dyn Fn(&TreePath, &Entry) -> bool + Send + Sync>;

/// A view of a tree without some files and folders.
struct Filtered {
    tree: Arc<Tree>,
    hides: Hides,
}

impl Source for Filtered {
    fn entry(&self, path: &TreePath) -> Option<Entry> {
        self.tree.entry(path).filter(|entry| !(self.hides)(path, entry))
    }

    fn read(&self, path: &TreePath) -> Result<Arc<[u8]>, Unreadable> {
        match self.entry(path) {
            Some(_) => self.tree.read(path),
            None => Err(Unreadable::System("it is not in the artifact of the source".to_owned())),
        }
    }

    fn names(&self, path: &TreePath) -> Vec<String> {
        let names = self.tree.names(path).into_iter();
        names.filter(|name| self.entry(&path.join(name)).is_some()).collect()
    }

    fn is_plain_folder(&self, folder: &TreePath) -> bool {
        self.tree.source.is_plain_folder(folder) && !(self.hides)(folder, &Entry::Folder)
    }
}
