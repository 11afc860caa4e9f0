//! Lowers the level of some warnings about patches in shared folders. Such a patch selects nothing in one root, but has
//! an effect in another root that uses the folder.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::super::checkout::{Scan, reached};
use super::super::report::{Located, Report};
use crate::admission::Level;
use crate::kustomize::checkout::Build;
use crate::kustomize::finding::TreeFinding;
use crate::kustomize::roots;
use crate::kustomize::tree::TreePath;

/// The id of the rule that reports patches that select nothing.
const RULE: &str = "KZ025";

/// The findings about patches that select no object. A key is the address of a finding in memory. A value contains the
/// folder of the file with the finding, and the number of kustomization roots in which the finding occurs. A
/// kustomization root is a folder that is built.
#[derive(Default)]
pub(super) struct SharedFindings(HashMap<*const Located, (TreePath, usize)>);

impl SharedFindings {
    /// Counts one more kustomization root that has this finding. Counts only findings about patches that select no
    /// object.
    ///
    /// The memory address of `located` identifies the finding. So if several roots have the same finding, the caller
    /// must pass the same `Rc` for each of these roots.
    pub(super) fn count(&mut self, finding: &TreeFinding, located: &Rc<Located>) {
        if finding.rule == RULE {
            let folder = finding.location.file.parent().unwrap_or_default();
            self.0.entry(Rc::as_ptr(located)).or_insert((folder, 0)).1 += 1;
        }
    }

    /// Lowers the level of findings about patches that select no object. A patch can be in a folder that several
    /// kustomization roots use. A kustomization root is a folder that is built. If the patch selects an object in at
    /// least one of these roots, its findings get the level `audit`. Otherwise, they keep their level.
    pub(super) fn lower(self, scan: &Scan, builds: &[Build], report: &mut Report) {
        if self.0.is_empty() {
            return;
        }
        let users = users(scan, builds);
        let lowered = |located: &mut Rc<Located>| {
            let counted = self.0.get(&Rc::as_ptr(located));
            let is_used = |(folder, count): &&(TreePath, usize)| users.get(folder).is_some_and(|users| users > count);
            if counted.filter(is_used).is_some() {
                let level = located.level.min(Level::Audit);
                *located = Rc::new(Located { level, ..Located::clone(located) });
            }
        };
        report.findings.iter_mut().for_each(lowered);
        report.roots.iter_mut().flat_map(|root| &mut root.findings).for_each(lowered);
    }
}

/// Returns the number of kustomize builds that use each folder.
fn users(scan: &Scan, builds: &[Build]) -> HashMap<TreePath, usize> {
    let mut users = HashMap::new();
    for build in builds {
        for folder in folders(scan, build) {
            *users.entry(folder).or_default() += 1;
        }
    }
    users
}

/// Returns the folders that a kustomize build uses:
///
/// - the root folder
/// - the components that Flux or Argo CD adds to the root
/// - if the root folder has no kustomization file, each folder below it that has one, because Flux then builds these
///   folders
/// - all folders to which the kustomization files in these folders refer, directly or indirectly
pub(super) fn folders(scan: &Scan, build: &Build) -> HashSet<TreePath> {
    let Build { root, options, .. } = build;
    let added = roots::added_components(&scan.tree, root, options);
    let components = added.iter().map(|entry| TreePath::from(&*format!("{root}/{entry}")));
    let mut open: Vec<_> = components.chain([root.clone()]).collect();
    if !scan.references.contains_key(root) {
        open.extend(scan.folders.iter().filter(|folder| folder.is_within(root)).cloned());
    }
    reached(&scan.references, open)
}
