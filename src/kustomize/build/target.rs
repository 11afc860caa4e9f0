//! Accumulating the objects of a kustomization: its resources, generators, components, transformers, validators and vars.
//!
//! Source: kustomize's `api/internal/target/kusttarget.go`.

use std::sync::Arc;

use super::config::{Config, merge_shared};
use super::resmap::ResMap;
use super::resource::Resource;
use super::run::{Run, Target, bad_objects, lost_words};
use super::stop::{Step, Stop};
use super::vars::Vars;
use super::{absorb, read};
use crate::kustomize::file::NAMES;
use crate::kustomize::finding::Site;
use crate::kustomize::references::{Loader, NoFile, NoFolder};
use crate::kustomize::tree::TreePath;

/// What has been accumulated.
#[derive(Debug, Clone, Default)]
pub(super) struct Accumulator {
    /// The objects.
    pub map: ResMap,
    /// The field specs in force.
    pub config: Arc<Config>,
    /// The vars.
    pub vars: Vars,
}

impl Run<'_> {
    /// Adds the objects of a kustomization to an accumulator.
    ///
    /// # Errors
    ///
    /// If kustomize rejects it.
    pub(super) fn accumulate(&mut self, target: &Target<'_>, mut acc: Accumulator) -> Step<Accumulator> {
        let kustomization = &target.file.kustomization;
        for (list, entries) in [("resources", &kustomization.resources), ("bases", &kustomization.bases)] {
            acc = self.resources(target, list, entries, acc)?;
        }
        self.configurations(target, &mut acc)?;
        self.crds(target, &mut acc)?;
        self.generators(target, &mut acc)?;
        for (index, entry) in kustomization.components.iter().enumerate() {
            acc = self.component(target, entry, &target.entry("components", index), acc)?;
        }
        self.transformers(target, &mut acc)?;
        self.validators(target, &mut acc)?;
        acc.vars
            .record(&kustomization.vars, &mut acc.map)
            .map_err(|(index, message)| Stop::refused(target.entry("vars", index), message))?;
        Ok(acc)
    }

    /// Adds files and folders.
    ///
    /// # Errors
    ///
    /// If an entry is neither.
    pub(super) fn resources(
        &mut self,
        target: &Target<'_>,
        list: &str,
        entries: &[String],
        mut acc: Accumulator,
    ) -> Step<Accumulator> {
        for (index, entry) in entries.iter().enumerate() {
            acc = self.resource(target, entry, &target.entry(list, index), acc)?;
        }
        Ok(acc)
    }

    /// Adds the entry of a list of plugins that is a file or a folder.
    ///
    /// # Errors
    ///
    /// If it is neither.
    pub(super) fn plugin_files(
        &mut self,
        target: &Target<'_>,
        list: &str,
        index: usize,
        entry: &str,
        acc: Accumulator,
    ) -> Step<Accumulator> {
        self.resource(target, entry, &target.entry(list, index), acc)
    }

    fn resource(&mut self, target: &Target<'_>, entry: &str, site: &Site, acc: Accumulator) -> Step<Accumulator> {
        match target.loader.file(self.tree, entry, self.options) {
            Ok(path) => self.file(target, entry, &path, site, acc),
            Err(NoFile::Http) => Err(Stop::unknown(site.clone(), format!("{entry} would have to be fetched"))),
            Err(_) => self.folder(target, entry, site, acc, false),
        }
    }

    fn file(
        &mut self,
        target: &Target<'_>,
        entry: &str,
        path: &TreePath,
        site: &Site,
        mut acc: Accumulator,
    ) -> Step<Accumulator> {
        let (_, bytes) = self.load(&target.loader, entry, site)?;
        let source = self.sources.add(path);
        let mut resources = read::objects(&bytes, source).map_err(|bad| bad_objects(&bad, path))?;
        if let Some(note) = &target.note {
            let note = note.append(entry);
            resources.iter_mut().for_each(|resource| resource.source = Some(note.clone()));
        }
        self.afford(&resources, site)?;
        self.looked_up(&resources);
        acc.map.scope = self.scope();
        acc.map.append_all(resources).map_err(|resource| self.conflict(&resource, site))?;
        self.observe(&acc.map, "read", site);
        Ok(acc)
    }

    fn component(&mut self, target: &Target<'_>, entry: &str, site: &Site, acc: Accumulator) -> Step<Accumulator> {
        self.folder(target, entry, site, acc, true)
    }

    fn folder(
        &mut self,
        target: &Target<'_>,
        entry: &str,
        site: &Site,
        mut acc: Accumulator,
        is_component: bool,
    ) -> Step<Accumulator> {
        let folder = target.loader.folder(self.tree, entry, self.options).map_err(|no| no_folder(site, entry, &no))?;
        self.visit(site, target.depth)?;
        let loader = Loader { root: &folder, referrer: Some(&target.loader) };
        let is_shared = !is_component && target.note.is_none();
        if is_shared && let Some(base) = self.shared_base(&loader) {
            self.budget.spend(base.bytes).map_err(|exceeded| Stop::unknown(site.clone(), exceeded.to_string()))?;
            self.merge(&mut acc, base.accumulator.clone(), site)?;
            return Ok(acc);
        }
        let pending = self.begin_base(&folder);
        let file = self.kustomization(&loader, site)?;
        let source = self.sources.add(&file.path);
        let note = target.note.as_ref().map(|note| note.append(entry));
        let inner = Target { loader, file, own: None, source, note, depth: target.depth + 1 };
        self.openapi(&inner, false)?;
        let found = inner.file.kustomization.is_component();
        if found != is_component {
            let words = if found { "is a Component, which belongs in `components`" } else { "is no Component" };
            return Err(Stop::refused(site.clone(), format!("{folder} {words}")));
        }
        if is_component {
            return self.accumulate(&inner, acc);
        }
        let base = Accumulator { map: ResMap::new(self.scope()), ..Accumulator::default() };
        let base = self.accumulate(&inner, base)?;
        if is_shared {
            self.end_base(pending, &base);
        }
        self.merge(&mut acc, base, site)?;
        Ok(acc)
    }

    fn merge(&mut self, acc: &mut Accumulator, base: Accumulator, site: &Site) -> Step<()> {
        acc.map.scope = self.scope();
        let Accumulator { map, config, vars } = base;
        acc.map.append_all(map.into_resources()).map_err(|resource| self.conflict(&resource, site))?;
        let refused = |message: String| Stop::refused(site.clone(), message);
        merge_shared(&mut acc.config, &config).map_err(|conflict| refused(conflict.to_string()))?;
        acc.vars.merge(vars).map_err(refused)
    }

    /// Returns the error for an object with a duplicate identity.
    pub(super) fn conflict(&self, resource: &Resource, site: &Site) -> Stop {
        let id = resource.id(&self.scope()).to_string();
        Stop::refused(site.clone(), format!("may not add resource with an already registered id: {id}"))
    }

    /// Uses what new objects take.
    fn afford(&self, resources: &[Resource], site: &Site) -> Step<()> {
        let measured = resources.iter().try_for_each(|resource| self.budget.node(&resource.node));
        measured.map_err(|exceeded| Stop::unknown(site.clone(), exceeded.to_string()))
    }

    fn generators(&mut self, target: &Target<'_>, acc: &mut Accumulator) -> Step<()> {
        let generated = self.built_in_generators(target)?;
        let generated = generated.into_iter().chain(self.plugin_generators(target)?);
        acc.map.scope = self.scope();
        for (resource, site) in generated.collect::<Vec<_>>() {
            let place = site.clone();
            self.afford(std::slice::from_ref(&resource), &site)?;
            absorb::absorb(&mut acc.map, resource).map_err(|message| Stop::refused(site, message))?;
            self.observe(&acc.map, "generated", &place);
        }
        Ok(())
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
            transformer.run(self, &mut acc.map)?;
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

    /// Runs validators, which may fail or add a label that they ran, and nothing else.
    fn validators(&mut self, target: &Target<'_>, acc: &mut Accumulator) -> Step<()> {
        let validators = &target.file.kustomization.validators;
        for validator in self.plugin_transformers(target, "validators", validators)? {
            let before = super::finish::texts(&acc.map, self)?;
            validator.run(self, &mut acc.map)?;
            if super::finish::texts(&acc.map, self)? != before {
                return Err(Stop::refused(
                    validator.site.clone(),
                    "a validator may not change objects, and this one does",
                ));
            }
        }
        Ok(())
    }
}

fn no_folder(site: &Site, entry: &str, no_folder: &NoFolder) -> Stop {
    let site = site.clone();
    match no_folder {
        NoFolder::Empty => Stop::refused(site, "the entry is empty"),
        NoFolder::Git { .. } => Stop::unknown(site, format!("{entry} is a git repository, which is not fetched")),
        NoFolder::Absolute => Stop::refused(site, format!("{entry} is an absolute path")),
        NoFolder::Ambiguous => Stop::refused(site, format!("a name in {entry} holds `..`")),
        NoFolder::Lost(lost) => Stop::refused(site, lost_words(entry, lost)),
        NoFolder::File(path) => {
            Stop::refused(site, format!("{path} is a file, and must be a folder with one of {NAMES:?}"))
        }
        NoFolder::Ancestor { folder, visited } => {
            Stop::refused(site, format!("cycle: {folder} holds {visited}, which is being built"))
        }
    }
}
