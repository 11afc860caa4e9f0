//! Finds roots. A root is a folder that contains a kustomization file, if no other kustomization refers to the folder.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::Files;
use super::file::{Kustomization, NAMES};
use super::glob;
use super::options::Options;
use super::references::{Loader, NoFolder};
use super::tree::{Tree, TreePath};

/// The folders and files to which the kustomization file of a folder refers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    /// Folders that the kustomization file lists in `resources`, `components` and similar fields.
    pub folders: BTreeSet<TreePath>,
    /// Files that the kustomization file lists in `resources`, `generators` and similar fields. These fields accept
    /// files and folders.
    pub files: BTreeSet<TreePath>,
    /// Files that the kustomization file uses but does not list as resources, such as patches, plugin configurations,
    /// and data files of ConfigMap generators.
    pub parts: BTreeSet<TreePath>,
}

/// Returns the components that a Flux or Argo CD object adds to the folder `root`. For Flux, these are the entries of
/// `spec.components` of a Kustomization. For Argo CD, these are the entries of `kustomize.components` in a source of an
/// Application. Patterns in these entries, such as `../components/*`, are expanded. The paths are relative to `root`.
pub fn added_components(tree: &Tree, root: &TreePath, options: &Options) -> Vec<String> {
    let of_argo = options.argo.components.iter().flat_map(|entry| glob::matching(tree, root, entry));
    options.flux.components.iter().cloned().chain(of_argo).collect()
}

/// Returns the local files and folders to which the kustomization file in `folder` refers. Skips references to missing
/// files and folders. Returns no references if the folder has no kustomization file, or if the file cannot be read.
pub fn references(tree: &Tree, folder: &TreePath, options: &Options, files: &Files) -> References {
    let mut found = References::default();
    for name in NAMES {
        let path = folder.join(name);
        if tree.entry(&path).is_none() {
            continue;
        }
        let Ok(file) = files.kustomization(tree, &path) else { continue };
        let loader = Loader { root: folder, referrer: None };
        for entry in entries(&file.kustomization) {
            match loader.folder(tree, entry, options) {
                Ok(folder) => drop(found.folders.insert(folder)),
                Err(NoFolder::File(file)) => drop(found.files.insert(file)),
                Err(_) => {}
            }
        }
        let parts = parts(&file.kustomization).into_iter().filter_map(|entry| loader.file(tree, entry, options).ok());
        found.parts.extend(parts);
    }
    found
}

/// Returns the roots among `folders`. A folder is a root if no other folder refers to it. Folders that refer to each
/// other in a cycle may not be reachable from any root. The result then also contains some of these folders, so that
/// every folder is reachable from a root.
///
/// `refers` returns the folders to which a folder refers.
pub fn roots(folders: &[TreePath], refers: impl Fn(&TreePath) -> BTreeSet<TreePath>) -> Vec<TreePath> {
    // each file is read once, because a large repository has more files than fit in the cache
    let known: HashMap<&TreePath, BTreeSet<TreePath>> = folders.iter().map(|folder| (folder, refers(folder))).collect();
    let refers = |folder: &TreePath| known.get(folder).cloned().unwrap_or_else(|| refers(folder));
    let referred: HashSet<&TreePath> = known.values().flatten().collect();
    let (rest, mut roots): (Vec<_>, Vec<_>) = folders.iter().cloned().partition(|folder| referred.contains(folder));
    if rest.is_empty() {
        return roots;
    }
    let mut reached = HashSet::new();
    for root in &roots {
        reach(root, &refers, &mut reached);
    }
    for folder in rest {
        if !reached.contains(&folder) {
            reach(&folder, &refers, &mut reached);
            roots.push(folder);
        }
    }
    roots
}

fn reach(from: &TreePath, refers: &impl Fn(&TreePath) -> BTreeSet<TreePath>, reached: &mut HashSet<TreePath>) {
    let mut open = vec![from.clone()];
    while let Some(folder) = open.pop() {
        if reached.insert(folder.clone()) {
            open.extend(refers(&folder));
        }
    }
}

/// Returns the entries of all fields that may contain folders, such as `resources`.
fn entries(file: &Kustomization) -> impl Iterator<Item = &str> {
    let lists =
        [&file.resources, &file.bases, &file.components, &file.generators, &file.transformers, &file.validators];
    lists.into_iter().flatten().map(String::as_str)
}

/// Returns the paths of the files to which a kustomization file refers in fields such as `patches`, `configurations`
/// and `configMapGenerator`.
fn parts(file: &Kustomization) -> Vec<&str> {
    let lists = [
        &file.patches_strategic_merge,
        &file.configurations,
        &file.crds,
        &file.generators,
        &file.transformers,
        &file.validators,
    ];
    let mut parts: Vec<&str> = lists.into_iter().flatten().map(String::as_str).collect();
    parts.extend(file.patches.iter().chain(&file.patches_json6902).map(|patch| patch.path.as_str()));
    parts.extend(file.replacements.iter().map(|replacement| replacement.path.as_str()));
    parts.extend(file.openapi.get("path").map(String::as_str));
    for generator in file.config_map_generator.iter().chain(&file.secret_generator) {
        let sources =
            generator.files.iter().map(|source| source.rsplit_once('=').map_or(source.as_str(), |(_, path)| path));
        parts.extend(sources);
    }
    parts.retain(|part| !part.is_empty() && !part.contains('\n'));
    parts
}

#[cfg(test)]
mod tests {
    use super::super::tree::Memory;
    use super::*;

    #[test]
    fn reads_each_folder_once() {
        let folders = ["app", "base", "part"].map(TreePath::from);
        let read = std::cell::RefCell::new(Vec::new());
        let refers = |folder: &TreePath| {
            read.borrow_mut().push(folder.clone());
            if folder.as_str() == "app" { folders[1..].iter().cloned().collect() } else { BTreeSet::new() }
        };
        assert_eq!(roots(&folders, refers), folders[..1]);
        assert_eq!(*read.borrow(), folders);
    }

    #[test]
    fn what_nobody_refers_to_is_a_root() {
        let files = Memory::new()
            .file("app/kustomization.yaml", "resources: [../base]\npatches: [{path: patch.yaml}]\n")
            .file("app/patch.yaml", "kind: ConfigMap\n")
            .file("base/kustomization.yml", "resources: [a.yaml]\n")
            .file("base/a.yaml", "kind: ConfigMap\n")
            .file("alone/kustomization.yaml", "kind: Component\n")
            .file("ring/a/kustomization.yaml", "resources: [../b]\n")
            .file("ring/b/Kustomization", "resources: [../a]\n");
        let (tree, options, read) = (Tree::new(files, "/"), Options::default(), Files::default());
        let folders = ["alone", "app", "base", "ring/a", "ring/b"].map(TreePath::from);
        let refers = |folder: &TreePath| references(&tree, folder, &options, &read).folders;
        assert_eq!(roots(&folders, refers), ["alone", "app", "ring/a"].map(TreePath::from));
        assert_eq!(references(&tree, &"base".into(), &options, &read).files, [TreePath::from("base/a.yaml")].into());
        let found = references(&tree, &"app".into(), &options, &read);
        assert_eq!(found.parts, [TreePath::from("app/patch.yaml")].into());
    }
}
