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
    /// Finds the used folders, to which Flux Kustomizations or similar objects in the checkout refer directly or
    /// through a base. Moves the other `builds` to the end. If the objects name less than half of the folders that can
    /// be built, sets `is_used` of all builds, because something outside of the checkout may use the other folders.
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

    /// Returns whether the folder of a file is unused. A folder is unused if no Flux Kustomization or similar object in
    /// the checkout builds it.
    pub(super) fn excludes(&self, file: &TreePath) -> bool {
        let folder = file.parent().unwrap_or_default();
        self.folders.as_ref().is_some_and(|folders| !folders.contains(&folder))
    }
}

/// Lowers the level of a finding to `audit`, because nothing builds its file.
pub(super) fn lowered(located: Located) -> Located {
    Located { level: located.level.min(Level::Audit), is_unused: located.level > Level::Audit, ..located }
}

/// Returns the number of findings whose level was lowered because their file is in an unused folder. A folder is unused
/// if no Flux Kustomization or similar object in the checkout builds it.
pub(super) fn count(findings: &[Rc<Located>]) -> usize {
    findings.iter().filter(|located| located.is_unused).count()
}
