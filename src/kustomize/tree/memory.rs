//! A kustomize tree whose files are in memory.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::{Entry, MAX_FILE_BYTES, Source, TreePath, Unreadable};

/// A set of files, folders and symbolic links in memory, for a kustomize build. They come from an archive, from a
/// Kubernetes object such as a ConfigMap, or from a test.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    nodes: HashMap<TreePath, Node>,
    top: BTreeSet<String>,
    weight: u64,
    /// Whether a symbolic link was added, or a file or link replaced a folder. If false, folders can be looked up
    /// directly by their path, without a search for links in the path.
    has_detours: bool,
}

#[derive(Debug, Clone)]
enum Node {
    File(Arc<[u8]>),
    Link(String),
    /// A folder; contains the names of its files, links and folders.
    Folder(BTreeSet<String>),
}

impl Memory {
    /// Creates an empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file and its parent folders.
    #[must_use]
    pub fn file(mut self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.add_file(&TreePath::from(path), content.as_ref());
        self
    }

    /// Adds a symbolic link to `target`, and the parent folders of the link.
    #[must_use]
    pub fn link(mut self, path: &str, target: &str) -> Self {
        self.add(&TreePath::from(path), Node::Link(target.to_owned()));
        self
    }

    /// Adds a folder and its parent folders. The folder may stay empty.
    #[must_use]
    pub fn folder(mut self, path: &str) -> Self {
        self.add_folder(&TreePath::from(path));
        self
    }

    pub(super) fn add_file(&mut self, path: &TreePath, content: &[u8]) {
        self.add(path, Node::File(Arc::from(content)));
    }

    pub(super) fn add_link(&mut self, path: &TreePath, target: &str) {
        self.add(path, Node::Link(target.to_owned()));
    }

    pub(super) fn add_folder(&mut self, path: &TreePath) {
        if !path.as_str().is_empty() && !matches!(self.nodes.get(path), Some(Node::Folder(_))) {
            self.add(path, Node::Folder(BTreeSet::new()));
        }
    }

    /// Adds the file `path` with the content of the existing file `of`. Does nothing if `of` is not a file.
    pub(super) fn add_copy(&mut self, path: &TreePath, of: &TreePath) {
        if let Some(Node::File(content)) = self.nodes.get(of).cloned() {
            self.add(path, Node::File(content));
        }
    }

    /// Returns the number of files, links and folders.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the sum of the sizes of all files and the lengths of all paths, in bytes.
    pub(super) fn weight(&self) -> u64 {
        self.weight
    }

    /// Returns the total cost of parsing all files whose name is in `names`, in bytes. The cost of a file is an
    /// estimate of the memory that the parsed file needs (see [`super::cost`]).
    pub(super) fn cost_of(&self, names: &[&str]) -> u64 {
        let costs = self.nodes.iter().filter(|(path, _)| names.contains(&path.name())).map(|(_, node)| match node {
            Node::File(content) => super::cost(content),
            Node::Link(_) | Node::Folder(_) => 0,
        });
        costs.sum()
    }

    fn add(&mut self, path: &TreePath, node: Node) {
        let content = if let Node::File(content) = &node { content.len() } else { 0 };
        self.insert(path, node, content);
        let mut child = path.clone();
        while let Some(parent) = child.parent() {
            let name = child.name().to_owned();
            if parent.as_str().is_empty() {
                self.top.insert(name);
                return;
            }
            match self.nodes.get_mut(&parent) {
                Some(Node::Folder(names)) => {
                    names.insert(name);
                    return;
                }
                _ => self.insert(&parent, Node::Folder(BTreeSet::from([name])), 0),
            };
            child = parent;
        }
    }

    fn insert(&mut self, path: &TreePath, node: Node, content: usize) {
        self.weight += (content + path.as_str().len()) as u64;
        let is_link = matches!(node, Node::Link(_));
        let replaced = self.nodes.insert(path.clone(), node);
        self.has_detours |= is_link || matches!(replaced, Some(Node::Folder(_)));
    }
}

impl Source for Memory {
    fn entry(&self, path: &TreePath) -> Option<Entry> {
        if path.as_str().is_empty() {
            return Some(Entry::Folder);
        }
        Some(match self.nodes.get(path)? {
            Node::File(_) => Entry::File,
            Node::Link(target) => Entry::Link(target.clone()),
            Node::Folder(_) => Entry::Folder,
        })
    }

    fn read(&self, path: &TreePath) -> Result<Arc<[u8]>, Unreadable> {
        match self.nodes.get(path) {
            Some(Node::File(content)) if content.len() as u64 > MAX_FILE_BYTES => Err(Unreadable::TooLarge),
            Some(Node::File(content)) => Ok(Arc::clone(content)),
            _ => Err(Unreadable::System("it is not a file".to_owned())),
        }
    }

    fn names(&self, path: &TreePath) -> Vec<String> {
        if path.as_str().is_empty() {
            return self.top.iter().cloned().collect();
        }
        match self.nodes.get(path) {
            Some(Node::Folder(names)) => names.iter().cloned().collect(),
            _ => Vec::new(),
        }
    }

    fn is_plain_folder(&self, folder: &TreePath) -> bool {
        let is_folder = || folder.as_str().is_empty() || matches!(self.nodes.get(folder), Some(Node::Folder(_)));
        !self.has_detours && is_folder()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kustomize::tree::{Located, Lost, Tree};

    #[test]
    fn a_folder_is_plain_if_no_path_can_lead_through_a_link() {
        let (plain, folder) = (Memory::new().file("a/b/c.yaml", ""), TreePath::from("a/b"));
        assert!(plain.is_plain_folder(&folder) && plain.is_plain_folder(&TreePath::root()));
        assert!(!plain.is_plain_folder(&TreePath::from("a/b/c.yaml")) && !plain.is_plain_folder(&TreePath::from("x")));
        assert!(!plain.link("d", "a").is_plain_folder(&folder));
    }

    #[test]
    fn a_file_can_replace_a_folder() {
        let tree = Tree::new(Memory::new().file("a/b/c.yaml", "").file("a", ""), "/srv");
        let located = tree.locate(&TreePath::root(), "a/b/c.yaml");
        assert_eq!(located, Err(Lost::NotAFolder(TreePath::from("a"))));
        let tree = Tree::new(Memory::new().file("a", "").file("a/b/c.yaml", ""), "/srv");
        let located = tree.locate(&TreePath::root(), "a/b/c.yaml");
        assert_eq!(located, Ok(Located::File(TreePath::from("a/b/c.yaml"))));
    }
}
