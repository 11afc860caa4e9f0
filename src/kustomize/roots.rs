//! The folders of a tree that are to be built: those that no other refers to.

use std::collections::{BTreeMap, BTreeSet};

use super::file::{KustomizationFile, NAMES};
use super::files::Files;
use super::tree::{Entry, Located, Tree, TreePath};

/// Folders deeper than this are not looked into.
const DEEPEST: usize = 64;
/// A repository of 1 000 roots and 3 000 components has some 20 000 files.
const MOST_FILES: usize = 1_000_000;

/// A folder that is to be judged by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// The folder.
    pub folder: TreePath,
    /// Whether it is a Component, which nobody refers to: to be judged with
    /// [`Options::lone_components`](super::options::Options::lone_components).
    pub is_component: bool,
}

/// The folders with a kustomization file that no other refers to, sorted.
///
/// Folders that only refer to one another have one root among them. What `skip` says of is not looked into.
pub fn find_roots(tree: &Tree, files: &Files, skip: &dyn Fn(&TreePath) -> bool) -> Vec<Root> {
    let mut search = Search { tree, files, skip, found: BTreeMap::new(), seen: 0 };
    search.folder(&TreePath::root(), 0);
    let found = search.found;
    let referred: BTreeSet<_> = found.values().flat_map(|folder| &folder.refers_to).collect();
    let mut roots: Vec<_> = found.keys().filter(|path| !referred.contains(path)).cloned().collect();
    let mut reached = BTreeSet::new();
    roots.iter().for_each(|root| reach(&found, root, &mut reached));
    for path in found.keys() {
        if !reached.contains(path) {
            roots.push(path.clone());
            reach(&found, path, &mut reached);
        }
    }
    roots.sort();
    let root = |folder: TreePath| {
        let is_component = found.get(&folder).is_some_and(|found| found.is_component);
        Root { folder, is_component }
    };
    roots.into_iter().map(root).collect()
}

/// A folder with a kustomization file.
struct Found {
    is_component: bool,
    refers_to: Vec<TreePath>,
}

fn reach(found: &BTreeMap<TreePath, Found>, from: &TreePath, reached: &mut BTreeSet<TreePath>) {
    let mut ahead = vec![from.clone()];
    while let Some(path) = ahead.pop() {
        if reached.insert(path.clone()) {
            ahead.extend(found.get(&path).map(|folder| folder.refers_to.clone()).unwrap_or_default());
        }
    }
}

struct Search<'a> {
    tree: &'a Tree,
    files: &'a Files,
    skip: &'a dyn Fn(&TreePath) -> bool,
    found: BTreeMap<TreePath, Found>,
    seen: usize,
}

impl Search<'_> {
    fn folder(&mut self, folder: &TreePath, depth: usize) {
        let names = self.tree.names(folder);
        if let Some(name) = NAMES.into_iter().find(|name| names.iter().any(|own| own == name)) {
            let found = self.kustomization(folder, name);
            self.found.insert(folder.clone(), found);
        }
        for name in names {
            let path = folder.join(&name);
            self.seen += 1;
            let is_folder = self.seen <= MOST_FILES && self.tree.entry(&path) == Some(Entry::Folder);
            if is_folder && depth < DEEPEST && name != ".git" && !(self.skip)(&path) {
                self.folder(&path, depth + 1);
            }
        }
    }

    fn kustomization(&self, folder: &TreePath, name: &str) -> Found {
        let path = match self.tree.locate(folder, name) {
            Ok(Located::File(path)) => path,
            _ => return Found { is_component: false, refers_to: Vec::new() },
        };
        match self.files.kustomization(self.tree, &path) {
            Ok(file) => {
                Found { is_component: file.kustomization.is_component(), refers_to: self.references(folder, &file) }
            }
            Err(_) => Found { is_component: false, refers_to: Vec::new() },
        }
    }

    fn references(&self, folder: &TreePath, file: &KustomizationFile) -> Vec<TreePath> {
        let said = &file.kustomization;
        let lists =
            [&said.resources, &said.bases, &said.components, &said.generators, &said.transformers, &said.validators];
        let entries = lists.into_iter().flatten().filter(|entry| !entry.is_empty() && !entry.contains('\n'));
        let folders = entries.filter_map(|entry| match self.tree.locate(folder, entry) {
            Ok(Located::Folder(path)) if path != *folder => Some(path),
            _ => None,
        });
        folders.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::Memory;
    use super::*;

    #[test]
    fn what_nobody_refers_to_is_a_root() {
        let files = Memory::new()
            .file("app/kustomization.yaml", "resources: [../base]\n")
            .file("base/kustomization.yml", "resources: []\n")
            .file("parts/alone/kustomization.yaml", "kind: Component\n")
            .file("ring/a/kustomization.yaml", "resources: [../b]\n")
            .file("ring/b/Kustomization", "resources: [../a]\n")
            .file("vendor/x/kustomization.yaml", "resources: []\n");
        let skip = |path: &TreePath| path.as_str() == "vendor";
        let roots = find_roots(&Tree::new(files, "/"), &Files::default(), &skip);
        let told: Vec<_> = roots.iter().map(|root| (root.folder.as_str(), root.is_component)).collect();
        assert_eq!(told, [("app", false), ("parts/alone", true), ("ring/a", false)]);
    }
}
