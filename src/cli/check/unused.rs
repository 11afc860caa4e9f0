//! Finds the kustomize roots that no object in the checkout builds. Lowers the level of findings in these roots,
//! because the roots cannot affect a cluster.

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
    /// The folders that Flux Kustomizations or similar objects refer to, directly or through other kustomizations.
    /// `None` if these objects name too few folders to tell which ones are unused.
    folders: Option<HashSet<TreePath>>,
}

impl Used {
    /// Determines which folders of a checkout are used. A folder is used if a Flux Kustomization or a similar object in
    /// the checkout builds it, directly or through other kustomizations. Sorts `builds`: builds of used folders come
    /// first.
    ///
    /// The used folders are unknown if the checkout has no such objects, or if more folders are unused than used. The
    /// objects are then probably outside of the checkout, so `is_used` is set in all `builds`.
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

    /// Returns whether the built folders can be determined from the objects in the checkout, such as Flux
    /// Kustomizations.
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

/// Lowers the level of a finding to at most `audit`, and returns the finding. Its field `is_unused` says whether the
/// level has changed. Callers use this function for findings in files that are not applied to a cluster.
pub(super) fn lowered(located: Located) -> Located {
    Located { level: located.level.min(Level::Audit), is_unused: located.level > Level::Audit, ..located }
}

/// Returns the number of findings whose level was lowered because their file is in an unused folder. A folder is unused
/// if no Flux Kustomization or similar object in the checkout builds it.
pub(super) fn count(findings: &[Rc<Located>]) -> usize {
    findings.iter().filter(|located| located.is_unused).count()
}
