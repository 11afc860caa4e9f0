//! A tree of files, read only: a folder on disk, a tar archive, or files in memory.
//!
//! Everything is asked for by the path within the tree. Links are evaluated here, step by step as the kernel does, and
//! never lead out of the tree: what is above its root is not known to it.

mod archive;
mod folder;
mod memory;
mod path;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use archive::{ArchiveError, ArchiveLimits};
pub use folder::FolderError;
pub use memory::Memory;
pub use path::TreePath;

/// Go's `filepath.EvalSymlinks` gives up after as many.
const MOST_LINKS: usize = 255;
/// Kubernetes takes objects of 1.5 MB; a file beyond ten times that is not a configuration.
pub const LARGEST_FILE: u64 = 16 << 20;

/// What stands behind a path, links not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A file that can be read.
    File,
    /// A folder.
    Folder,
    /// A link, and what it says.
    Link(String),
    /// A socket, a device, a pipe: reading it could last for ever.
    Other,
}

/// What a tree is read from. Paths hold no links and no `..`.
pub trait Source: Send + Sync {
    /// What stands at a path.
    fn entry(&self, path: &TreePath) -> Option<Entry>;
    /// Returns the content of a file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is too large.
    fn read(&self, path: &TreePath) -> Result<Arc<[u8]>, Unreadable>;
    /// Returns the names in a folder, sorted.
    fn names(&self, path: &TreePath) -> Vec<String>;
    /// Returns whether a folder was seen here before, to which no link led.
    fn has_seen(&self, _folder: &TreePath) -> bool {
        false
    }
}

/// Why a file that is there cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// More than [`LARGEST_FILE`].
    #[error("it is larger than {LARGEST_FILE} bytes")]
    TooLarge,
    /// More was read already than may be read at once.
    #[error("more than {0} bytes would have to be read")]
    TooMuch(u64),
    /// What the system said.
    #[error("{0}")]
    System(String),
}

/// What a path leads to once all links are evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Located {
    /// A file.
    File(TreePath),
    /// A folder.
    Folder(TreePath),
    /// Something that is neither.
    Other(TreePath),
}

/// Why a path leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    /// Nothing stands at this path, the first of its folders that is missing.
    Missing(TreePath),
    /// This is a file, and the path goes on.
    NotAFolder(TreePath),
    /// Links that lead to one another.
    Loop,
    /// It leads out of the tree; whether to a folder that holds the tree.
    Outside {
        /// Whether the tree is in what the path leads to.
        above: bool,
    },
}

/// A tree of files.
pub struct Tree {
    source: Box<dyn Source>,
    base: String,
    weight: u64,
    kustomizations: u64,
}

impl Tree {
    /// Creates a tree that stands at `base`, an absolute path, for those who refer to it by absolute paths.
    pub fn new(source: impl Source + 'static, base: &str) -> Self {
        Self { source: Box::new(source), base: path::cleaned(base), weight: 0, kustomizations: 0 }
    }

    /// Returns the absolute path of the root.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The same tree for somebody who may read only so many bytes of it, counted by their [`cost`]: further files are there, but unreadable.
    #[must_use]
    pub fn within(self: &Arc<Self>, bytes: u64) -> Self {
        let source = Metered { tree: Arc::clone(self), left: AtomicU64::new(bytes), most: bytes };
        let Self { base, weight, kustomizations, .. } = &**self;
        Self { source: Box::new(source), base: base.clone(), weight: *weight, kustomizations: *kustomizations }
    }

    /// What it costs to read all kustomization files of an archive; see [`cost`].
    pub fn kustomizations_cost(&self) -> u64 {
        self.kustomizations
    }

    /// Returns the bytes of an archive's contents and paths; zero for a tree from elsewhere.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// What `entry`, as it is written in the folder `from`, leads to.
    ///
    /// Like kustomize this first takes `..` out of the written path and then evaluates links.
    ///
    /// # Errors
    ///
    /// If it leads nowhere.
    pub fn locate(&self, from: &TreePath, entry: &str) -> Result<Located, Lost> {
        if is_name(entry) && self.source.has_seen(from) {
            return self.evaluate(from.clone(), vec![entry.to_owned()]);
        }
        let written = if entry.starts_with('/') {
            path::cleaned(entry)
        } else {
            path::cleaned(&format!("{}/{from}/{entry}", self.base))
        };
        let within = self.inside(&written)?;
        let (folder, name) = within.rsplit_once('/').unwrap_or(("", within));
        let folder = TreePath::of_cleaned(folder);
        let is_short = self.source.has_seen(&folder);
        if is_short { self.evaluate(folder, steps(name)) } else { self.evaluate(TreePath::root(), steps(within)) }
    }

    /// Returns the names in a folder.
    pub fn names(&self, folder: &TreePath) -> Vec<String> {
        self.source.names(folder)
    }

    /// What stands at a path, links not followed.
    pub fn entry(&self, path: &TreePath) -> Option<Entry> {
        self.source.entry(path)
    }

    /// Returns the content of a located file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is too large.
    pub fn read(&self, file: &TreePath) -> Result<Arc<[u8]>, Unreadable> {
        self.source.read(file)
    }

    /// What of an absolute path is within the tree.
    fn inside<'p>(&self, absolute: &'p str) -> Result<&'p str, Lost> {
        let base = self.base.trim_end_matches('/');
        match absolute.strip_prefix(base) {
            Some("") => Ok(""),
            Some(rest) if rest.starts_with('/') => Ok(rest.trim_start_matches('/')),
            _ => Err(Lost::Outside { above: is_above(absolute, base) }),
        }
    }

    /// Goes on from a folder, the next step being the last one of those ahead.
    fn evaluate(&self, mut here: TreePath, mut ahead: Vec<String>) -> Result<Located, Lost> {
        let mut entry = Entry::Folder;
        let mut links = 0;
        while let Some(step) = ahead.pop() {
            if entry != Entry::Folder {
                return Err(Lost::NotAFolder(here));
            }
            if step == ".." {
                here = here.parent().ok_or(Lost::Outside { above: ahead.is_empty() })?;
                continue;
            }
            let next = here.join(&step);
            entry = self.source.entry(&next).ok_or_else(|| Lost::Missing(next.clone()))?;
            let Entry::Link(target) = &entry else {
                here = next;
                continue;
            };
            links += 1;
            if links > MOST_LINKS {
                return Err(Lost::Loop);
            }
            if target.starts_with('/') {
                here = TreePath::root();
                ahead.extend(steps(self.inside(&path::cleaned(target))?));
            } else {
                ahead.extend(steps(target));
            }
            entry = Entry::Folder;
        }
        Ok(match entry {
            Entry::File => Located::File(here),
            Entry::Folder => Located::Folder(here),
            Entry::Other | Entry::Link(_) => Located::Other(here),
        })
    }
}

/// As much plain YAML as makes the most values that aliases may stand for in one document.
const ALIASES: u64 = 512 << 10;

/// What it costs to read a file, in bytes of plain YAML: with aliases a small text stands for a large document.
pub fn cost(content: &[u8]) -> u64 {
    let refers = |mark: u8| {
        let opens = |before: u8| b" \t\n[{,:-".contains(&before);
        let mut triples = content.windows(3);
        triples.any(|three| {
            three[1] == mark
                && opens(three[0])
                && (three[2].is_ascii_alphanumeric() || three[2] >= 0x80 || three[2] == b'_')
        })
    };
    content.len() as u64 + if refers(b'&') && refers(b'*') { ALIASES } else { 0 }
}

/// A tree that is read for so long.
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

    fn has_seen(&self, folder: &TreePath) -> bool {
        self.tree.source.has_seen(folder)
    }
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree").field("base", &self.base).finish_non_exhaustive()
    }
}

/// Returns whether an entry is the name of what stands beside it.
fn is_name(entry: &str) -> bool {
    !matches!(entry, "" | "." | "..") && !entry.contains('/')
}

/// Returns the names in a path, the last one first.
fn steps(path: &str) -> Vec<String> {
    path.split('/').rev().filter(|step| !step.is_empty() && *step != ".").map(str::to_owned).collect()
}

fn is_above(candidate: &str, base: &str) -> bool {
    let candidate = candidate.trim_end_matches('/');
    base.strip_prefix(candidate).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        let files = Memory::new()
            .file("app/kustomization.yaml", "kind: Kustomization\n")
            .file("base/a.yaml", "")
            .link("app/base", "../base")
            .link("app/out", "../../etc")
            .link("loop/a", "b")
            .link("loop/b", "a");
        Tree::new(files, "/srv")
    }

    fn located(entry: &str) -> Result<Located, Lost> {
        tree().locate(&TreePath::from("app"), entry)
    }

    #[test]
    fn links_are_followed_within_the_tree() {
        assert_eq!(located("base/a.yaml"), Ok(Located::File("base/a.yaml".into())));
        assert_eq!(located("/srv/base"), Ok(Located::Folder("base".into())));
        assert_eq!(located("./base/../base/."), Ok(Located::Folder("base".into())));
        assert_eq!(located("../loop/a"), Err(Lost::Loop));
    }

    #[test]
    fn nothing_leads_out_of_the_tree() {
        assert_eq!(located("out"), Err(Lost::Outside { above: false }));
        assert_eq!(located("../.."), Err(Lost::Outside { above: true }));
        assert_eq!(located("/etc/passwd"), Err(Lost::Outside { above: false }));
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(located("../no/such"), Err(Lost::Missing("no".into())));
        assert_eq!(located("../base/a.yaml/x"), Err(Lost::NotAFolder("base/a.yaml".into())));
    }
}
