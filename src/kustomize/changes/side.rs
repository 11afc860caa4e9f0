//! One side of a comparison: a tree and its roots.

use std::collections::BTreeSet;

use super::reach::Reach;
use crate::kustomize::Files;
use crate::kustomize::build::Built;
use crate::kustomize::build::{Settings, Shared, Step, build_shared};
use crate::kustomize::file::NAMES;
use crate::kustomize::options::Options;
use crate::kustomize::roots;
use crate::kustomize::tree::{Entry, Tree, TreePath};

/// A tree with its roots.
pub struct Side {
    /// The tree.
    pub tree: Tree,
    options: Options,
    files: Files,
    shared: Shared,
    settings: Settings,
    /// The roots: folders with a kustomization file to which no other folder refers. Components are not roots.
    pub(super) roots: BTreeSet<TreePath>,
}

impl Side {
    /// Finds the roots of a tree.
    pub fn new(tree: Tree, options: &Options) -> Self {
        let (files, options) = (Files::default(), options.clone());
        let mut folders = Vec::new();
        collect(&tree, &TreePath::root(), &mut folders);
        let is_component = |root: &TreePath| {
            let file = NAMES.iter().find_map(|name| files.kustomization(&tree, &root.join(name)).ok());
            file.is_some_and(|file| file.kustomization.is_component())
        };
        let mut found = roots::roots(&folders, |folder| roots::references(&tree, folder, &options, &files).folders);
        found.retain(|root| !is_component(root));
        let roots = found.into_iter().collect();
        Self { tree, options, files, shared: Shared::default(), settings: Settings::default(), roots }
    }

    /// Builds a root.
    pub(super) fn build(&self, root: &TreePath) -> Step<Built<'_>> {
        build_shared(&self.tree, root, &self.options, &self.settings, (&self.files, &self.shared))
    }

    /// Returns the files that a root can read.
    pub(super) fn reach(&self, root: &TreePath) -> Reach {
        Reach::of(root, &self.tree, &self.options, &self.files)
    }
}

/// Collects the folders with a kustomization file. Skips hidden folders and templates of Helm charts.
fn collect(tree: &Tree, folder: &TreePath, found: &mut Vec<TreePath>) {
    let names = tree.names(folder);
    if names.iter().any(|name| NAMES.contains(&name.as_str())) {
        found.push(folder.clone());
    }
    let is_chart = names.iter().any(|name| name == "Chart.yaml");
    let is_left_out = |name: &str| name.starts_with('.') || (is_chart && name == "templates");
    for below in names.iter().filter(|name| !is_left_out(name)).map(|name| folder.join(name)) {
        if tree.entry(&below) == Some(Entry::Folder) {
            collect(tree, &below, found);
        }
    }
}
