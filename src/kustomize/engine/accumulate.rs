//! Accumulates the objects of a kustomization: its resources, generators, components, transformers, validators and
//! vars.
//!
//! Source: kustomize's `api/internal/target/kusttarget.go`.

use super::accumulator::Accumulator;
use super::config::merge_shared;
use super::entries::unfetched;
use super::lost::Lost;
use super::odd_annotations;
use super::read;
use super::resmap::ResMap;
use super::resource::Resource;
use super::run::Run;
use super::stop::{Step, Stop};
use super::target::{Entry, Target};
use crate::kustomize::explain::StepKind;
use crate::kustomize::finding::Site;
use crate::kustomize::options::Version;
use crate::kustomize::references::NoFile;
use crate::kustomize::rules::{kz013, kz030, kz031};
use crate::kustomize::tree::TreePath;

impl Run<'_> {
    /// Builds a kustomization: adds its objects to `acc`, and runs its transformers on all objects in `acc`.
    ///
    /// # Errors
    ///
    /// If a limit is exceeded. In a build that stops at its first error, also if kustomize rejects the kustomization,
    /// or if the result of kustomize is unknown.
    pub(super) fn accumulate(&mut self, target: &Target<'_>, acc: &mut Accumulator) -> Step<()> {
        let kustomization = &target.file.kustomization;
        let has_components_first = self.options.version <= Version::NEWEST_WITH_COMPONENTS_FIRST;
        self.resources(target, "resources", &kustomization.resources, acc)?;
        self.resources(target, "bases", &kustomization.bases, acc)?;
        if has_components_first {
            self.components(target, acc)?;
        }
        self.configurations(target, acc)?;
        self.crds(target, acc)?;
        self.generators(target, acc)?;
        if !has_components_first {
            self.components(target, acc)?;
        }
        self.transformers(target, acc)?;
        self.validators(target, acc)?;
        self.vars(target, acc)
    }

    /// Reads the files and builds the folders in a list of a kustomization, and adds their objects to `acc`. `list` is
    /// the name of the list, such as `resources`, and `entries` are its items.
    ///
    /// # Errors
    ///
    /// If a limit is exceeded. In a build that stops at its first error, also if an entry cannot be read or built.
    pub(super) fn resources(
        &mut self,
        target: &Target<'_>,
        list: &'static str,
        entries: &[String],
        acc: &mut Accumulator,
    ) -> Step<()> {
        for (index, text) in entries.iter().enumerate() {
            self.resource(target, &target.list_entry(list, index, text), acc)?;
        }
        Ok(())
    }

    /// Adds to `acc` the objects of the file or folder that an entry names.
    ///
    /// # Errors
    ///
    /// If a limit is exceeded. In a build that stops at its first error, also if the entry cannot be read or built.
    pub(super) fn resource(&mut self, target: &Target<'_>, entry: &Entry<'_>, acc: &mut Accumulator) -> Step<()> {
        self.count_entry(&entry.site)?;
        let added = match target.loader.file(self.tree, entry.text, self.options) {
            Ok(path) => self.file(target, entry, &path, acc),
            Err(NoFile::Http(None)) => {
                self.part(entry, None, StepKind::Remote);
                let message = format!("\"{}\" is an HTTP URL, which is not fetched here", entry.text);
                Err(unfetched(entry.site.clone(), message))
            }
            Err(NoFile::Other) => Err(Stop::unknown(entry.site.clone(), "it is neither a file nor a folder")),
            Err(no_file) => match target.loader.folder(self.tree, entry.text, self.options) {
                Ok(folder) => self.folder(target, entry, &folder, acc),
                Err(no_folder) => Err(self.neither_file_nor_folder(&target.loader, entry, &no_file, &no_folder)),
            },
        };
        self.recover(&mut acc.map.lost, entry.loss(), added).map(drop)
    }

    fn file(&mut self, target: &Target<'_>, entry: &Entry<'_>, path: &TreePath, acc: &mut Accumulator) -> Step<()> {
        let bytes = self.read(path, &entry.site)?;
        let source = self.sources.add(path);
        let mut resources = read::objects(&bytes, source).map_err(|bad| {
            self.part(entry, Some(path), StepKind::Broken);
            let at = self.site_at(path, bad.line());
            if bad.is_open() {
                return Stop::unknown(at, format!("\"{}\" {bad}", entry.text));
            }
            Stop::refused(kz013::found(entry.site.clone(), entry.text, &at, &bad))
        })?;
        if let Some(note) = &target.note {
            let note = note.append(entry.text);
            resources.iter().try_for_each(|resource| self.check_notable(resource))?;
            resources.iter_mut().for_each(|resource| resource.source = Some(note.clone()));
        }
        acc.map.has_placeholder |= resources.is_empty();
        self.afford(&resources, &entry.site)?;
        self.looked_up(&resources)?;
        acc.map.scope = self.scope();
        self.part(entry, Some(path), StepKind::File);
        self.adds_to_part(|| resources.iter().map(|resource| resource.id(&acc.map.scope).words()).collect());
        self.append_all(&mut acc.map, resources, &entry.site)?;
        self.observe(&acc.map, "read", &entry.site);
        Ok(())
    }

    /// Checks that kustomize can record the origin of an object in the object's annotations. Returns an error if
    /// `metadata.annotations` is not a mapping, or if Portcullis cannot determine what kustomize would write.
    fn check_notable(&self, resource: &Resource) -> Step<()> {
        let words = || resource.id(&self.scope()).words();
        if resource.node.get("metadata").is_some_and(odd_annotations::hinder_notes) {
            let message =
                format!("{} has a duplicate key metadata.annotations, in which kustomize records its origin", words());
            return Err(Stop::unknown(self.site_of(resource.origin), message));
        }
        let annotations = resource.node.at_path(&["metadata", "annotations"]);
        if annotations.is_none_or(|annotations| annotations.is_map() || annotations.is_null()) {
            return Ok(());
        }
        let why = "metadata.annotations is not a mapping, so kustomize cannot record the origin there";
        Err(Stop::of_content(kz013::no_object(self.site_of(resource.origin), &words(), why)))
    }

    /// Adds objects to `map`. Skips each object whose identity another object already has, and records an error for it
    /// at `site`. A build that stops at its first error returns this error.
    pub(super) fn append_all(&self, map: &mut ResMap, resources: Vec<Resource>, site: &Site) -> Step<()> {
        for resource in resources {
            let Err(resource) = map.append(resource) else { continue };
            let id = resource.id(&map.scope);
            let other = map.with_id(&id);
            let mut lost = other.map_or(map.lost, |other| map.lost.max(other.lost).max(resource.lost));
            let other = other.map(|other| self.site_of(other.origin));
            let conflict = kz030::conflict(site.clone(), &id, &self.site_of(resource.origin), other.as_ref());
            self.recover(&mut lost, Lost::Nothing, Err::<(), _>(Stop::of_content(conflict)))?;
        }
        Ok(())
    }

    /// Adds the objects, field specs and vars of a base to `acc`. `site` is the position of the entry that names the
    /// base.
    ///
    /// # Errors
    ///
    /// In a build that stops at its first error: if an object or var already exists, or if two specs of the same field
    /// have different values of `create`.
    pub(super) fn merge(&mut self, acc: &mut Accumulator, base: Accumulator, site: &Site) -> Step<()> {
        acc.map.scope = self.scope();
        let Accumulator { map, config, vars, .. } = base;
        let lost = map.lost;
        acc.map.has_placeholder |= map.has_placeholder;
        let mut resources = map.into_resources();
        if lost == Lost::Changes {
            resources.iter_mut().for_each(|resource| resource.lost = lost);
        }
        acc.map.lost = lost.min(Lost::Objects).max(acc.map.lost);
        self.append_all(&mut acc.map, resources, site)?;
        let merged = merge_shared(&mut acc.config, &config);
        let merged = merged.map_err(|conflict| Stop::refused(kz031::found(site.clone(), &conflict.to_string())));
        self.recover(&mut acc.map.lost, Lost::Changes, merged)?;
        self.merge_vars(acc, vars)
    }

    /// Counts the size of new objects against the memory limit of the build. Returns an error if the limit is exceeded.
    pub(super) fn afford(&self, resources: &[Resource], site: &Site) -> Step<()> {
        let measured = resources.iter().try_for_each(|resource| self.budget.node(&resource.node));
        measured.map_err(|exceeded| Stop::limit(site.clone(), exceeded))
    }

    fn transformers(&mut self, target: &Target<'_>, acc: &mut Accumulator) -> Step<()> {
        let mut transformers = self.built_in_transformers(target, &acc.config)?;
        transformers.extend(self.plugin_transformers(
            target,
            "transformers",
            &target.file.kustomization.transformers,
        )?);
        acc.map.scope = self.scope();
        for transformer in transformers {
            self.adds(|| transformer.words());
            let ran = transformer.run(self, &mut acc.map);
            self.recover(&mut acc.map.lost, Lost::Changes, ran)?;
            if let Some(note) = &transformer.note {
                for resource in acc.map.resources_mut() {
                    match resource.source {
                        None => resource.source = Some(note.clone()),
                        Some(_) => resource.transformations.push(note.clone()),
                    }
                }
            }
            acc.map.drop_empty();
            self.observe(&acc.map, transformer.what.name(), &transformer.site);
        }
        Ok(())
    }

    /// Adds the file or folder of a list entry, such as `../base` in `resources`, to the recorded steps of the build.
    /// Does nothing if the build does not record its steps.
    pub(super) fn part(&self, entry: &Entry<'_>, path: Option<&TreePath>, kind: StepKind) {
        if let Some(step) = self.log.borrow_mut().step() {
            step.parts.push(crate::kustomize::explain::Step::new(entry.list, entry.text, path.cloned(), kind));
        }
    }

    /// Adds objects to the record of the build step that has just read them from a file. `words` returns a description
    /// of each object, such as `ConfigMap a`. Does nothing if the build does not record its steps.
    fn adds_to_part(&self, words: impl FnOnce() -> Vec<String>) {
        if let Some(part) = self.log.borrow_mut().step().and_then(|step| step.parts.last_mut()) {
            part.adds.extend(words());
        }
    }

    /// Records effects of the current build step, such as `namePrefix p-`. `words` returns a description of each
    /// effect. Does nothing if the build does not record its steps.
    pub(super) fn adds(&self, words: impl FnOnce() -> Vec<String>) {
        if let Some(step) = self.log.borrow_mut().step() {
            step.adds.extend(words());
        }
    }
}
