//! Removes the results of a folder from the caches of a command, after the last build that uses the folder.

use std::collections::{HashMap, HashSet};

use crate::kustomize::Files;
use crate::kustomize::engine::Shared;
use crate::kustomize::roots::References;
use crate::kustomize::tree::TreePath;

/// A list of the folders whose cached data can be removed after each build of a command, because no later build uses
/// these folders. The builds of a command are numbered from 0.
pub(super) struct LastUses<'r> {
    references: &'r HashMap<TreePath, References>,
    folders: Vec<Vec<TreePath>>,
}

impl<'r> LastUses<'r> {
    /// Creates the list. `used` contains one set for each build, in the order of the builds: the folders that the build
    /// uses. `references` contains the files and folders to which each folder refers.
    pub(super) fn of(
        used: impl Iterator<Item = HashSet<TreePath>>,
        references: &'r HashMap<TreePath, References>,
    ) -> Self {
        let (mut last, mut folders) = (HashMap::new(), Vec::new());
        for (number, used) in used.enumerate() {
            folders.push(Vec::new());
            last.extend(used.into_iter().map(|folder| (folder, number)));
        }
        for (folder, number) in last {
            folders[number].push(folder);
        }
        Self { references, folders }
    }

    /// Removes from `files` and `caches` the data of each folder whose last use is the build `number`. All builds up to
    /// this build must have ended.
    pub(super) fn release<'s>(
        &mut self,
        number: usize,
        files: &Files,
        caches: impl Iterator<Item = &'s Shared> + Clone,
    ) {
        for folder in self.after(number) {
            files.forget(&folder);
            let references = self.references.get(&folder);
            for shared in caches.clone() {
                shared.forget(&folder, references.into_iter().flat_map(|found| &found.parts));
            }
        }
    }

    /// Returns the folders that the build `number` uses, but no later build uses. Removes these folders from the list,
    /// so a second call with the same number returns none.
    fn after(&mut self, number: usize) -> Vec<TreePath> {
        self.folders.get_mut(number).map(std::mem::take).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_returned_after_its_last_use() {
        let builds = [&["a", "base"][..], &["b", "base", "other"], &["c", "other"]];
        let used = builds.map(|folders| folders.iter().map(|folder| TreePath::from(*folder)).collect());
        let references = HashMap::new();
        let mut uses = LastUses::of(used.into_iter(), &references);
        let mut after = |number| {
            let mut folders = uses.after(number);
            folders.sort();
            folders.iter().map(|folder| folder.as_str().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!([after(0), after(1), after(2)], [&["a"][..], &["b", "base"], &["c", "other"]]);
        assert_eq!((after(0), after(3)), (Vec::<String>::new(), Vec::new()));
    }
}
