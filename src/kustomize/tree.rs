//! A read-only tree of files: a folder on disk, a tar archive, a revision of a git repository, or files in memory.
//!
//! Paths are relative to the root of the tree. Symbolic links are resolved one path segment at a time, as the Linux
//! kernel does. A path that leads out of the tree is an error.

mod archive;
mod fetch;
mod folder;
mod git;
mod memory;
mod path;
mod views;

use std::sync::Arc;

pub use archive::{ArchiveError, ArchiveLimits};
pub use fetch::Fetch;
pub use folder::FolderError;
pub use git::{GitError, Repository, Revision};
pub use memory::Memory;
pub use path::TreePath;

/// The names of a kustomization file, in the order of precedence.
pub const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// Maximum number of symbolic links that are followed to resolve a path, as in Go's `filepath.EvalSymlinks`.
const MAX_LINKS: usize = 255;
/// Maximum size of a file, in bytes. Kubernetes limits objects to 1.5 MB, so a file ten times as large is not
/// configuration.
pub const MAX_FILE_BYTES: u64 = 16 << 20;

/// The type of a file system entry, such as a file or a link. Links are not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A file that can be read.
    File,
    /// A folder.
    Folder,
    /// A symbolic link. Contains the target of the link.
    Link(String),
    /// A socket, device or pipe: reading it could block forever.
    Other,
}

/// The storage of a kustomize tree. Paths that are passed to its methods contain no links and no `..`.
pub trait Source: Send + Sync {
    /// Returns the type of the file, folder or link at a path; `None` if the path does not exist.
    fn entry(&self, path: &TreePath) -> Option<Entry>;
    /// Returns the content of a file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is too large.
    fn read(&self, path: &TreePath) -> Result<Arc<[u8]>, Unreadable>;
    /// Returns the names of the files, links and folders in the folder `path`, sorted. Empty if there is no such
    /// folder.
    fn names(&self, path: &TreePath) -> Vec<String>;
    /// Returns whether it is already known that `folder` exists and that its path contains no links. [`Tree::locate`]
    /// then does not search this path for links. The default is `false`.
    fn is_plain_folder(&self, _folder: &TreePath) -> bool {
        false
    }
}

/// The reason why an existing file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The file is larger than [`MAX_FILE_BYTES`].
    #[error("it is larger than {MAX_FILE_BYTES} bytes")]
    TooLarge,
    /// Reading the file would exceed the limit on the total size of all files that are read. Contains this limit, in
    /// bytes.
    #[error("more than {0} bytes would have to be read")]
    TooMuch(u64),
    /// Another error, such as one of the operating system. Contains the error message.
    #[error("{0}")]
    System(String),
}

/// The target of a path after resolving all links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Located {
    /// The path leads to a file. Contains the path of this file after all symbolic links are resolved.
    File(TreePath),
    /// The path leads to a folder. Contains the path of this folder after all symbolic links are resolved.
    Folder(TreePath),
    /// The path leads to something other than a file or folder, such as a device. Contains the path of the target, with
    /// links resolved.
    Other(TreePath),
}

/// The reason why a path cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    /// The path does not exist. Contains the part of the path up to the first missing segment.
    Missing(TreePath),
    /// A path segment before the last one is not a folder. Contains the path of this segment.
    NotAFolder(TreePath),
    /// The path leads into a cycle of links.
    Loop,
    /// The path leads out of the tree.
    Outside {
        /// Whether the path leads to a parent folder of the tree's root.
        above: bool,
    },
}

/// A read-only tree of files, in which paths and links are resolved.
pub struct Tree {
    source: Box<dyn Source>,
    base: String,
    weight: u64,
    kustomizations: u64,
    fetch: Option<Arc<dyn Fetch>>,
}

impl Tree {
    /// Creates a tree that reads its files from `source`. `base` is the absolute path of the tree's root. An absolute
    /// path in a kustomization file leads into the tree if it begins with `base`.
    pub fn new(source: impl Source + 'static, base: &str) -> Self {
        Self { source: Box::new(source), base: path::cleaned(base), weight: 0, kustomizations: 0, fetch: None }
    }

    /// Returns the absolute path of the root of the tree.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Returns the total cost of parsing the kustomization files of an archive, in bytes. The cost is an estimate of
    /// the memory that the parsed files need: the size of each file, and a constant for each file with YAML aliases
    /// (see [`cost`]). Zero if the tree was not read from an archive.
    pub fn kustomizations_cost(&self) -> u64 {
        self.kustomizations
    }

    /// Returns the total size of the contents of all files and of all paths, in bytes. Zero if the tree was not read
    /// from an archive.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// Resolves `entry` relative to the folder `from`.
    ///
    /// First removes `..` from the path, and then resolves links, as kustomize does.
    ///
    /// # Errors
    ///
    /// - If a part of the path does not exist or is not a folder.
    /// - If the path leads out of the tree, or into a cycle of links.
    pub fn locate(&self, from: &TreePath, entry: &str) -> Result<Located, Lost> {
        if is_name(entry) && self.source.is_plain_folder(from) {
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
        let is_short = self.source.is_plain_folder(&folder);
        if is_short { self.evaluate(folder, steps(name)) } else { self.evaluate(TreePath::root(), steps(within)) }
    }

    /// Returns the names of the files, links and folders in a folder, sorted. Empty if there is no such folder.
    pub fn names(&self, folder: &TreePath) -> Vec<String> {
        self.source.names(folder)
    }

    /// Returns the type of the file, folder or link at a path, without following links; `None` if the path does not
    /// exist.
    pub fn entry(&self, path: &TreePath) -> Option<Entry> {
        self.source.entry(path)
    }

    /// Returns the content of a file. The path must not contain links. [`Tree::locate`] returns paths without links.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is too large.
    pub fn read(&self, file: &TreePath) -> Result<Arc<[u8]>, Unreadable> {
        self.source.read(file)
    }

    /// Converts an absolute path to a path relative to the root of the tree. Returns an error if the path is outside of
    /// the tree.
    fn inside<'p>(&self, absolute: &'p str) -> Result<&'p str, Lost> {
        let base = self.base.trim_end_matches('/');
        match absolute.strip_prefix(base) {
            Some("") => Ok(""),
            Some(rest) if rest.starts_with('/') => Ok(rest.trim_start_matches('/')),
            _ => Err(Lost::Outside { above: is_above(absolute, base) }),
        }
    }

    /// Resolves the path segments in `ahead`, starting at the folder `here`. The segments are in reverse order.
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
            if links > MAX_LINKS {
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

/// Number of bytes that are added to the size of a file with YAML aliases, to estimate the memory that it needs after
/// parsing. An alias copies a value, so the parsed file can be much larger than its text.
const ALIASES: u64 = 512 << 10;

/// Returns the cost of parsing a file. The cost is the file size in bytes. If the file contains aliases, a constant is
/// added, because aliases expand to more values.
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

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree").field("base", &self.base).finish_non_exhaustive()
    }
}

/// Returns whether an entry is a single name: it contains no `/`, and is not empty, `.` or `..`.
fn is_name(entry: &str) -> bool {
    !matches!(entry, "" | "." | "..") && !entry.contains('/')
}

/// Returns the segments of a path in reverse order, without empty segments and `.`.
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
    fn names_missing_fragments() {
        assert_eq!(located("../no/such"), Err(Lost::Missing("no".into())));
        assert_eq!(located("../base/a.yaml/x"), Err(Lost::NotAFolder("base/a.yaml".into())));
    }
}
