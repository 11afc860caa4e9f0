//! Finds the kustomize roots that nothing builds. Lowers the level of their findings, because such roots cannot affect
//! a cluster.

use std::collections::HashSet;
use std::rc::Rc;

use super::super::checkout::Scan;
use super::super::report::Located;
use super::shared::folders;
use crate::admission::Level;
use crate::kustomize::checkout::{Build, Survey};
use crate::kustomize::tree::TreePath;

/// The used folders of a checkout. A folder is used if an object in the checkout, such as a Flux Kustomization, builds
/// it.
pub(super) struct Used {
    /// The folders that something builds. `None` if the objects in the checkout do not show which folders are built.
    folders: Option<HashSet<TreePath>>,
}

impl Used {
    /// Finds the used folders. Also sets `is_used` of each build, and moves the unused builds to the end. If the
    /// objects in the checkout build less than half of the roots, all roots count as used, because something else may
    /// build the other roots.
    pub(super) fn of(scan: &Scan, survey: &Survey, builds: &mut [Build]) -> Self {
        let roots = |is_used: bool| {
            let of_kind = builds.iter().filter(|build| build.is_used == is_used && build.owners.is_empty() != is_used);
            of_kind.map(|build| &build.root).collect::<HashSet<_>>().len()
        };
        if survey.builds.is_empty() || roots(true) < roots(false) {
            builds.iter_mut().for_each(|build| build.is_used = true);
            return Self { folders: None };
        }
        builds.sort_by_key(|build| !build.is_used);
        let used = builds.iter().filter(|build| build.is_used);
        Self { folders: Some(used.flat_map(|build| folders(scan, build)).collect()) }
    }

    /// Returns whether the objects in the checkout show which folders are built.
    pub(super) fn is_known(&self) -> bool {
        self.folders.is_some()
    }

    /// Returns whether nothing builds the folder of a file.
    pub(super) fn excludes(&self, file: &TreePath) -> bool {
        let folder = file.parent().unwrap_or_default();
        self.folders.as_ref().is_some_and(|folders| !folders.contains(&folder))
    }
}

/// Lowers the level of a finding to `audit`, because nothing builds its file.
pub(super) fn lowered(located: Located) -> Located {
    Located { level: located.level.min(Level::Audit), is_unused: located.level > Level::Audit, ..located }
}

/// Returns the number of findings whose level was lowered because nothing builds their files.
pub(super) fn count(findings: &[Rc<Located>]) -> usize {
    findings.iter().filter(|located| located.is_unused).count()
}
