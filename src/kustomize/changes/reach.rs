//! Computes the files that the build of a root can read. A root is a folder that is built on its own. If none of these
//! files changes, the result of the build does not change, so the root need not be built and compared.

use std::collections::BTreeSet;

use crate::kustomize::Files;
use crate::kustomize::file::NAMES;
use crate::kustomize::options::Options;
use crate::kustomize::references::Loader;
use crate::kustomize::roots;
use crate::kustomize::tree::{Entry, Tree, TreePath};

/// The folders and files that the build of a root can read. The build can read every file below these folders.
pub(super) struct Reach {
    folders: BTreeSet<TreePath>,
    files: BTreeSet<TreePath>,
}

impl Reach {
    pub(super) fn of(root: &TreePath, tree: &Tree, options: &Options, read: &Files) -> Self {
        let mut reach = Self { folders: BTreeSet::new(), files: BTreeSet::new() };
        let mut open = vec![root.clone()];
        let loader = Loader { root, referrer: None };
        let added = roots::added_components(tree, root, options);
        open.extend(added.iter().filter_map(|entry| loader.folder(tree, entry, options).ok()));
        while let Some(folder) = open.pop() {
            let references = roots::references(tree, &folder, options, read);
            reach.files.extend(references.parts);
            reach.files.extend(resources(tree, &folder, options, read));
            if reach.folders.insert(folder) {
                open.extend(references.folders);
            }
        }
        reach
    }

    /// Returns whether kustomize may read at least one of the `changed` files when it builds the root. A root is a
    /// folder that is built on its own.
    pub(super) fn has_any(&self, changed: &BTreeSet<TreePath>) -> bool {
        let is_below = |file: &TreePath| self.folders.iter().any(|folder| file.is_within(folder));
        changed.iter().any(|file| self.files.contains(file) || is_below(file))
    }
}

/// Returns the files that the kustomization file of `folder` lists in its field `resources`. The files may be outside
/// of `folder`.
fn resources(tree: &Tree, folder: &TreePath, options: &Options, read: &Files) -> Vec<TreePath> {
    let file = NAMES.iter().find_map(|name| read.kustomization(tree, &folder.join(name)).ok());
    let loader = Loader { root: folder, referrer: None };
    let entries = file.iter().flat_map(|file| &file.kustomization.resources);
    entries.filter_map(|entry| loader.file(tree, entry, options).ok()).collect()
}

/// Returns the files that differ between two trees. A file differs if it exists in only one tree, or if its content or
/// link target is different. Ignores the folder `.git`.
pub fn changed_files(old: &Tree, new: &Tree) -> BTreeSet<TreePath> {
    let mut changed = BTreeSet::new();
    compare(old, new, &TreePath::root(), &mut changed);
    changed
}

fn compare(old: &Tree, new: &Tree, folder: &TreePath, changed: &mut BTreeSet<TreePath>) {
    let names: BTreeSet<String> = [old, new].into_iter().flat_map(|tree| tree.names(folder)).collect();
    for path in names.iter().filter(|name| *name != ".git").map(|name| folder.join(name)) {
        let (before, after) = (old.entry(&path), new.entry(&path));
        if [&before, &after].into_iter().any(|entry| *entry == Some(Entry::Folder)) {
            compare(old, new, &path, changed);
        }
        let is_file = |entry: &Option<Entry>| !matches!(entry, None | Some(Entry::Folder));
        let differs = before != after || before == Some(Entry::File) && old.read(&path).ok() != new.read(&path).ok();
        if differs && (is_file(&before) || is_file(&after)) {
            changed.insert(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kustomize::options::Profile;
    use crate::kustomize::tree::Memory;

    #[test]
    fn components_of_flux_and_argo_cd_are_read() {
        let files = Memory::new().file("app/kustomization.yaml", "namePrefix: a-\n").file("part/o.yaml", "");
        let tree = Tree::new(files.file("part/kustomization.yaml", "kind: Component\nresources: [o.yaml]\n"), "/");
        let changed = BTreeSet::from([TreePath::from("part/o.yaml")]);
        let reads = |options: &Options| Reach::of(&"app".into(), &tree, options, &Files::default()).has_any(&changed);
        let [mut flux, mut argo] = [Profile::Flux, Profile::ArgoCd].map(Options::of);
        assert!(!reads(&flux) && !reads(&argo));
        flux.flux.components.push("../part".to_owned());
        assert!(reads(&flux));
        for entry in ["../part", "../p*"] {
            argo.argo.components = vec![entry.to_owned()];
            assert!(reads(&argo), "{entry}");
        }
    }
}
