//! Finds out which roots nothing builds, and lowers their findings: they harm no cluster.

use std::collections::HashSet;
use std::rc::Rc;

use super::super::checkout::Scan;
use super::super::report::Located;
use super::shared::folders;
use crate::admission::Level;
use crate::kustomize::checkout::{Build, Survey};
use crate::kustomize::tree::TreePath;

/// The parts of a checkout that objects in it build.
pub(super) struct Used {
    /// The folders; `None` if the objects do not tell who builds the checkout.
    folders: Option<HashSet<TreePath>>,
}

impl Used {
    /// Marks roots that nothing builds, and moves them to the end. Objects tell who builds a checkout if they build at least
    /// half of its roots.
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

    /// Returns whether it is known what nothing builds.
    pub(super) fn is_known(&self) -> bool {
        self.folders.is_some()
    }

    /// Returns whether nothing builds the folder of a file.
    pub(super) fn excludes(&self, file: &TreePath) -> bool {
        let folder = file.parent().unwrap_or_default();
        self.folders.as_ref().is_some_and(|folders| !folders.contains(&folder))
    }
}

/// Lowers a finding about something that nothing builds.
pub(super) fn lowered(located: Located) -> Located {
    Located { level: located.level.min(Level::Audit), is_unused: located.level > Level::Audit, ..located }
}

/// Counts the findings that were lowered.
pub(super) fn count(findings: &[Rc<Located>]) -> usize {
    findings.iter().filter(|located| located.is_unused).count()
}
