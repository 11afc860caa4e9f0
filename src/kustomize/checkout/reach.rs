//! Finds the files and folders that kustomize reads to build a folder, by following the references in kustomization
//! files.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use crate::kustomize::file::NAMES;
use crate::kustomize::files::Files;
use crate::kustomize::options::{Options, Profile};
use crate::kustomize::references::Loader;
use crate::kustomize::tree::{Entry, Tree, TreePath};

/// The folders and files that kustomize reads when it builds a root.
#[derive(Debug, Default)]
pub(super) struct Reach {
    pub(super) folders: HashSet<TreePath>,
    pub(super) files: HashSet<TreePath>,
}

/// The folders and files to which a folder refers directly.
#[derive(Debug, Default)]
struct Direct {
    folders: BTreeSet<TreePath>,
    files: BTreeSet<TreePath>,
}

/// Maximum depth of folders that are searched for manifests if a folder has no kustomization file. Flux then generates
/// a kustomization file that lists the manifests. The depth is limited because the search is recursive.
const MAX_DEPTH: usize = 64;

/// A search for all files and folders that kustomize reads when it builds a folder. It caches the direct references of
/// each folder.
pub(super) struct Reaches<'a> {
    tree: &'a Tree,
    files: &'a Files,
    options: Options,
    known: HashMap<TreePath, Rc<Direct>>,
}

impl<'a> Reaches<'a> {
    pub(super) fn new(tree: &'a Tree, files: &'a Files) -> Self {
        Self { tree, files, options: Options::of(Profile::Flux), known: HashMap::new() }
    }

    /// Returns the folders and files that a build of the folder `root` reads. `components` contains additional
    /// components, such as `spec.components` of a Flux Kustomization, which are not in the kustomization file.
    pub(super) fn of(&mut self, root: &TreePath, components: &[String]) -> Reach {
        let mut reach = Reach::default();
        let mut open = vec![root.clone()];
        let loader = Loader { root, referrer: None };
        open.extend(components.iter().filter_map(|entry| loader.folder(self.tree, entry, &self.options).ok()));
        while let Some(folder) = open.pop() {
            if reach.folders.insert(folder.clone()) {
                let direct = self.direct(&folder);
                open.extend(direct.folders.iter().cloned());
                reach.files.extend(direct.files.iter().cloned());
            }
        }
        reach
    }

    fn direct(&mut self, folder: &TreePath) -> Rc<Direct> {
        if let Some(known) = self.known.get(folder) {
            return Rc::clone(known);
        }
        let mut direct = Direct::default();
        match kustomization(self.tree, folder) {
            Some(file) => self.references(folder, file, &mut direct),
            None => self.generated(folder, 0, &mut direct),
        }
        let direct = Rc::new(direct);
        self.known.insert(folder.clone(), Rc::clone(&direct));
        direct
    }

    fn references(&self, folder: &TreePath, path: TreePath, direct: &mut Direct) {
        let loader = Loader { root: folder, referrer: None };
        if let Ok(file) = self.files.kustomization(self.tree, &path) {
            let lists = [&file.kustomization.resources, &file.kustomization.bases, &file.kustomization.components];
            for entry in lists.into_iter().flatten() {
                match loader.folder(self.tree, entry, &self.options) {
                    Ok(folder) => drop(direct.folders.insert(folder)),
                    Err(_) => direct.files.extend(loader.file(self.tree, entry, &self.options).ok()),
                }
            }
        }
        direct.files.insert(path);
    }

    /// Collects the references of a folder that has no kustomization file. Flux generates a kustomization file for such
    /// a folder. Adds to `direct` the folders and files that Flux would list in this file. `depth` is the depth of
    /// `folder` below the folder in which the search began.
    fn generated(&self, folder: &TreePath, depth: usize, direct: &mut Direct) {
        for name in self.tree.names(folder) {
            let path = folder.join(&name);
            match self.tree.entry(&path) {
                Some(Entry::Folder) if kustomization(self.tree, &path).is_some() => {
                    direct.folders.insert(path);
                }
                Some(Entry::Folder) if depth < MAX_DEPTH => self.generated(&path, depth + 1, direct),
                Some(Entry::File) if name.ends_with(".yaml") || name.ends_with(".yml") => {
                    direct.files.insert(path);
                }
                _ => {}
            }
        }
    }
}

/// Returns the path of the kustomization file in a folder; `None` if there is none.
fn kustomization(tree: &Tree, folder: &TreePath) -> Option<TreePath> {
    let mut paths = NAMES.into_iter().map(|name| folder.join(name));
    paths.find(|path| tree.entry(path) == Some(Entry::File))
}
