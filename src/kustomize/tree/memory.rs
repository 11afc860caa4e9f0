//! Files in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Entry, Source, TreePath, Unreadable};

/// A tree in memory: what an archive, an object or a test holds.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    nodes: BTreeMap<TreePath, Node>,
}

#[derive(Debug, Clone)]
enum Node {
    File(Arc<[u8]>),
    Link(String),
    Folder,
}

impl Memory {
    /// An empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file, and the folders it is in.
    #[must_use]
    pub fn file(mut self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.add_file(&TreePath::from(path), content.as_ref());
        self
    }

    /// Adds a link, and the folders it is in.
    #[must_use]
    pub fn link(mut self, path: &str, target: &str) -> Self {
        self.add(&TreePath::from(path), Node::Link(target.to_owned()));
        self
    }

    /// Adds a folder that may stay empty.
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
        if !matches!(self.nodes.get(path), Some(Node::Folder)) {
            self.add(path, Node::Folder);
        }
    }

    /// Gives `path` the content of a file that is there already.
    pub(super) fn add_copy(&mut self, path: &TreePath, of: &TreePath) {
        if let Some(Node::File(content)) = self.nodes.get(of).cloned() {
            self.add(path, Node::File(content));
        }
    }

    fn add(&mut self, path: &TreePath, node: Node) {
        let mut folder = path.parent();
        while let Some(parent) = folder.take_if(|parent| !self.nodes.contains_key(parent)) {
            folder = parent.parent();
            self.nodes.insert(parent, Node::Folder);
        }
        self.nodes.insert(path.clone(), node);
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
            Node::Folder => Entry::Folder,
        })
    }

    fn read(&self, path: &TreePath) -> Result<Arc<[u8]>, Unreadable> {
        match self.nodes.get(path) {
            Some(Node::File(content)) => Ok(Arc::clone(content)),
            _ => Err(Unreadable::System("it is not a file".to_owned())),
        }
    }

    fn names(&self, path: &TreePath) -> Vec<String> {
        let children = self.nodes.range(path.clone()..).map(|(key, _)| key);
        let within = children.take_while(|key| key.as_str().starts_with(path.as_str()));
        within.filter(|key| key.parent().as_ref() == Some(path)).map(|key| key.name().to_owned()).collect()
    }
}
