//! Builds the folders that a kustomization refers to: bases and components.
//!
//! Source: `accumulateComponents` and `accumulateDirectory` in kustomize's `api/internal/target/kusttarget.go`.

use super::accumulator::Accumulator;
use super::config::{Config, merge_shared};
use super::lost::Lost;
use super::resmap::ResMap;
use super::run::Run;
use super::stop::{Step, Stop};
use super::target::{Entry, Target};
use crate::admission::FieldPath;
use crate::kustomize::explain::{self, StepKind};
use crate::kustomize::file::{KustomizationFile, SharedFile};
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::references::{Loader, NoFolder};
use crate::kustomize::rules::{kz001, kz002, kz003, kz021, kz030, kz031};
use crate::kustomize::tree::TreePath;

impl Run<'_> {
    /// Applies the components of a kustomization to the objects in `acc`.
    ///
    /// # Errors
    ///
    /// If a limit is exceeded. In a build that stops at its first error, also if a component cannot be applied.
    pub(super) fn components(&mut self, target: &Target<'_>, acc: &mut Accumulator) -> Step<()> {
        for (index, text) in target.file.kustomization.components.iter().enumerate() {
            let entry = target.list_entry("components", index, text);
            let applied = self.component(target, &entry, acc);
            self.recover(&mut acc.map.lost, Lost::Changes, applied)?;
        }
        Ok(())
    }

    fn component(&mut self, target: &Target<'_>, entry: &Entry<'_>, acc: &mut Accumulator) -> Step<()> {
        match target.loader.folder(self.tree, entry.text, self.options) {
            Ok(folder) => {
                if let Some(before) = acc.components.get(&folder) {
                    self.report(kz021::found(entry.site.clone(), entry.text, before));
                }
                acc.components.entry(folder.clone()).or_insert_with(|| entry.site.clone());
                self.folder(target, entry, &folder, acc)
            }
            Err(NoFolder::File(path)) => {
                self.part(entry, Some(&path), StepKind::File);
                self.misplace();
                Err(Stop::refused(kz003::found(entry.site.clone(), entry.text, &path)))
            }
            Err(no_folder) => Err(self.no_folder(&target.loader, entry, &no_folder)),
        }
    }

    /// Sets `misplaced` in the last recorded step of the build. Call this method if the step is for a file that is
    /// listed in `components`, because this list may contain only folders.
    fn misplace(&self) {
        if let Some(part) = self.log.borrow_mut().step().and_then(|step| step.parts.last_mut()) {
            part.misplaced = true;
        }
    }

    /// Builds a folder that a kustomization file lists, for example in `resources` or `components`. If the folder is a
    /// base, adds its objects to `acc`. If it is a component, applies it to the objects in `acc`.
    ///
    /// # Errors
    ///
    /// - If the folder cannot be built, for example because it has no kustomization file.
    /// - If a limit is exceeded.
    pub(super) fn folder(
        &mut self,
        target: &Target<'_>,
        entry: &Entry<'_>,
        folder: &TreePath,
        acc: &mut Accumulator,
    ) -> Step<()> {
        self.visit(&entry.site, target.depth)?;
        let loader = Loader { root: folder, referrer: Some(&target.loader) };
        let is_shared = entry.list != "components" && target.note.is_none();
        if is_shared && let Some(base) = self.shared_base(&loader) {
            self.log.borrow_mut().add(&base.reports);
            self.budget.spend(base.bytes).map_err(|exceeded| Stop::limit(entry.site.clone(), exceeded))?;
            return self.merge(acc, base.accumulator.clone(), &entry.site);
        }
        let pending = self.begin_base(folder);
        self.begin_folder(entry, folder);
        let base = self.visited(target, entry, loader, acc);
        let reports = self.log.borrow_mut().end();
        if let Some(base) = base? {
            if is_shared {
                self.end_base(pending, &base, reports);
            }
            self.merge(acc, base, &entry.site)?;
        }
        Ok(())
    }

    fn begin_folder(&self, entry: &Entry<'_>, folder: &TreePath) {
        let mut log = self.log.borrow_mut();
        let is_recorded = log.step().is_some();
        let step = || explain::Step::new(entry.list, entry.text, Some(folder.clone()), StepKind::Broken);
        log.begin(is_recorded.then(step));
    }

    /// Builds the folder of a base or component. `entry` is the entry of a kustomization file that names the folder.
    /// `acc` contains the objects that were built before.
    ///
    /// - If `entry` is in the list `components`, applies the component to `acc` and returns `None`.
    /// - If `entry` is in another list, such as `resources`, returns the objects of the folder.
    ///
    /// Also returns `None` if the kustomization file of the folder is invalid, or if the folder is in the wrong list. A
    /// Component must be in `components`, and any other folder must not.
    fn visited(
        &mut self,
        target: &Target<'_>,
        entry: &Entry<'_>,
        loader: Loader<'_>,
        acc: &mut Accumulator,
    ) -> Step<Option<Accumulator>> {
        let file = self.kustomization(&loader, Some(entry))?;
        let inner = self.inner(target, entry, loader, file);
        let opened = self.openapi(&inner, false);
        self.recover(&mut acc.map.lost, entry.loss(), opened)?;
        let placed = self.placed(entry, &inner.file);
        let is_placed = self.recover(&mut acc.map.lost, entry.loss(), placed)?.is_some();
        let mut own = Accumulator::new(self.scope());
        if !is_placed || !inner.file.faults.is_empty() {
            // build the folder anyway, because its parts may have more errors
            acc.map.lost = entry.loss().max(acc.map.lost);
            own.map.lost = Lost::Objects;
            self.accumulate(&inner, &mut own)?;
            return Ok(None);
        }
        if entry.list != "components" {
            self.accumulate(&inner, &mut own)?;
            return Ok(Some(own));
        }
        self.accumulate(&inner, acc)?;
        self.unique(&mut acc.map, &entry.site)?;
        self.regather(entry, acc)?;
        Ok(None)
    }

    /// Repeats two steps of the build, because kustomize repeats them after it has applied a component. `entry` is the
    /// entry of `components` that names the component.
    ///
    /// The first step looks up whether the kinds of all objects are namespaced. The second step merges the field specs
    /// again. A field spec names a field that a transformer changes. The merge removes a field spec if an earlier one
    /// with the same path selects the same or fewer objects.
    fn regather(&self, entry: &Entry<'_>, acc: &mut Accumulator) -> Step<()> {
        let looked_up = self.looked_up(acc.map.resources());
        self.recover(&mut acc.map.lost, Lost::Nothing, looked_up)?;
        let mut config = Config::empty();
        let merged = merge_shared(&mut config, &acc.config);
        let merged = merged.map_err(|conflict| Stop::refused(kz031::found(entry.site.clone(), &conflict.to_string())));
        self.recover(&mut acc.map.lost, Lost::Changes, merged)?;
        acc.config = config;
        Ok(())
    }

    fn inner<'t>(&self, target: &Target<'_>, entry: &Entry<'_>, loader: Loader<'t>, file: SharedFile) -> Target<'t> {
        let is_component = file.kustomization.is_component();
        if let Some(step) = self.log.borrow_mut().step() {
            step.kind = if is_component { StepKind::Component } else { StepKind::Kustomization };
            step.misplaced = is_component != (entry.list == "components");
        }
        let source = self.sources.add(&file.path);
        let note = target.note.as_ref().map(|note| note.append(entry.text));
        Target { loader, file, own: None, source, note, depth: target.depth + 1 }
    }

    /// Checks that a folder in `components` is a Component, and that a folder in any other list is not a Component.
    fn placed(&self, entry: &Entry<'_>, file: &KustomizationFile) -> Step<()> {
        match misplacement(entry, file) {
            Some(finding) => Err(Stop::refused(finding)),
            None => Ok(()),
        }
    }

    /// Reports objects that have the same identity as another object, after a component or a patch has changed
    /// identities. kustomize fails in this case, because after a component or a patch, it adds all objects to a new
    /// list and rejects duplicates. If the build stops at its first error, returns this error.
    pub(super) fn unique(&self, map: &mut ResMap, site: &Site) -> Step<()> {
        if !map.may_have_duplicates() {
            return Ok(());
        }
        for (other, resource) in map.duplicates() {
            let (own, before) = (self.site_of(resource.origin), self.site_of(other.origin));
            let mut lost = map.lost.max(resource.lost).max(other.lost);
            let conflict = kz030::conflict(site.clone(), &resource.id(&map.scope), &own, Some(&before));
            self.recover(&mut lost, Lost::Nothing, Err::<(), _>(Stop::of_content(conflict)))?;
        }
        Ok(())
    }
}

fn misplacement(entry: &Entry<'_>, file: &KustomizationFile) -> Option<TreeFinding> {
    let kind = FieldPath::of(["kind"]);
    let defined = Site::new(file.path.clone(), file.place(&kind), kind);
    let site = entry.site.clone();
    match (entry.list == "components", file.kustomization.is_component()) {
        (false, true) => Some(kz001::found(site, entry.list, entry.index, entry.text, &defined)),
        (true, false) => {
            let says_kind = !file.kustomization.kind.is_empty();
            Some(kz002::found(site, entry.index, entry.text, &defined, says_kind))
        }
        _ => None,
    }
}
