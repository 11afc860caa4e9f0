//! Builds the folder that the user names, with the steps that kustomize runs only for this folder and not for its
//! bases.
//!
//! Source: kustomize's `api/krusty/kustomizer.go`.

use std::sync::Arc;

use super::accumulator::Accumulator;
use super::finish;
use super::lost::Lost;
use super::name_references;
use super::origin::OriginNote;
use super::output_settings::{Reorder, Settings};
use super::read;
use super::resmap::ResMap;
use super::resource::Resource;
use super::run::Run;
use super::sort::{self, Ranks};
use super::stop::{Step, Stop};
use super::target::{Own, Target};
use super::transformer;
use crate::admission::FieldPath;
use crate::kustomize::argo;
use crate::kustomize::explain::{self, StepKind};
use crate::kustomize::file::{NAMES, SharedFile};
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::flux::{self, Excluded};
use crate::kustomize::identity::ObjectId;
use crate::kustomize::node::Node;
use crate::kustomize::options::ArgoSpec;
use crate::kustomize::options::Profile;
use crate::kustomize::references::Loader;
use crate::kustomize::rules::{kz003, kz004, kz017, kz020, kz030, kz031, kz064};
use crate::kustomize::tree::{Located, TreePath};

impl Run<'_> {
    /// Returns the objects in `map` that Flux does not apply. `rendered` contains the identities of all objects in
    /// `map`.
    pub(super) fn excluded(&self, map: &ResMap, rendered: &[ObjectId]) -> Vec<Excluded> {
        let common = &self.options.flux.common_metadata;
        let objects = map.resources().iter().zip(rendered);
        objects.filter_map(|(resource, id)| Excluded::of(id, &resource.node, common)).collect()
    }

    /// Returns the identities of the objects that Flux renders, after variable substitution. `None` for profiles other
    /// than Flux, or if an identity is unknown.
    pub(super) fn rendered(&self, map: &ResMap) -> Option<Vec<ObjectId>> {
        if self.options.profile != Profile::Flux || map.lost != Lost::Nothing {
            return None;
        }
        let post_build = self.options.flux.post_build.as_ref();
        let id = |resource: &Resource| {
            let substitutes = !flux::is_left_alone(&resource.node);
            let known = |text: &str| match post_build.filter(|_| substitutes && text.contains('$')) {
                Some(post_build) => flux::evaluated(text, post_build),
                None => Some(text.to_owned()),
            };
            let version = resource.node.get("apiVersion").and_then(Node::text).unwrap_or_default();
            let group = version.rsplit_once('/').map_or("", |(group, _)| group);
            let [namespace, name, group, kind] =
                [resource.namespace(), resource.name(), group, resource.kind()].map(known);
            let is_known = resource.lost == Lost::Nothing;
            Some(ObjectId { namespace: namespace?, name: name?, group: group?, kind: kind? }).filter(|_| is_known)
        };
        map.resources().iter().map(id).collect()
    }

    /// Builds the folder `root`, and returns the objects that are printed.
    ///
    /// # Errors
    ///
    /// If kustomize cannot build the folder, or if Portcullis cannot determine the result of kustomize. For example,
    /// the build needs a Helm chart, or it exceeds a limit. A build that continues after errors records most errors
    /// instead of returning them.
    pub(super) fn root(&mut self, root: &TreePath, settings: &Settings) -> Step<ResMap> {
        let folder = self.root_folder(root)?;
        let loader = Loader { root: &folder, referrer: None };
        let mut acc = Accumulator::new(self.scope());
        let (file, own) = match self.options.profile {
            Profile::Flux => self.flux_file(&loader, &mut acc.map.lost)?,
            Profile::ArgoCd if self.options.argo != ArgoSpec::default() => {
                self.argo_file(&loader, &mut acc.map.lost)?
            }
            _ => (self.kustomization(&loader, None)?, None),
        };
        let source = self.sources.add(&file.path);
        let note = (!file.kustomization.build_metadata.is_empty()).then(OriginNote::default);
        let target = Target { loader, file, own, source, note, depth: 0 };
        self.begin_root(&target, &mut acc.map.lost);
        let opened = self.openapi(&target, true);
        self.recover(&mut acc.map.lost, Lost::Objects, opened)?;
        acc.map.scope = self.scope();
        self.accumulate(&target, &mut acc)?;
        self.finish(&target, acc, settings)
    }

    fn root_folder(&self, root: &TreePath) -> Step<TreePath> {
        let site = Site::of_file(root.clone());
        Err(Stop::refused(match self.tree.locate(&TreePath::root(), root.as_str()) {
            Ok(Located::Folder(folder)) => return Ok(folder),
            Ok(Located::File(path) | Located::Other(path)) => kz003::found(site, root.as_str(), &path),
            Err(_) => kz004::absent_root(site, self.near(&TreePath::root(), root.as_str())),
        }))
    }

    fn begin_root(&self, target: &Target<'_>, lost: &mut Lost) {
        let is_component = target.file.kustomization.is_component();
        let kind = if is_component { StepKind::Component } else { StepKind::Kustomization };
        // not with shared bases: every root would record their steps again
        if !self.is_strict && self.bases.is_none() {
            self.log.borrow_mut().explain(explain::Step::new("", "", Some(target.loader.root.clone()), kind));
        }
        let is_part = is_component && self.options.lone_components;
        if is_component && !is_part {
            self.report(kz020::found(target.site(FieldPath::of(["kind"])), target.loader.root));
        }
        if is_part || !target.file.faults.is_empty() {
            *lost = Lost::Objects.max(*lost);
        }
    }

    /// Returns the kustomization file of the built folder with the changes that Flux makes. If the folder has no
    /// kustomization file, Flux generates one. Also returns a record of the fields that come from the Flux
    /// Kustomization. If the file is incomplete because of errors, records in `lost` which kind of data is missing.
    fn flux_file(&mut self, loader: &Loader<'_>, lost: &mut Lost) -> Step<(SharedFile, Option<Own>)> {
        let names = self.tree.names(loader.root);
        let has_file = NAMES.iter().any(|name| names.iter().any(|own| own == name));
        let mut file = match has_file {
            true => Arc::unwrap_or_clone(self.kustomization(loader, None)?),
            false => {
                let check = |content: &[u8]| read::objects(content, 0).map(drop);
                let generated = flux::generate(self.tree, loader.root, self.files, &check);
                self.all(generated.findings, Lost::Objects, lost)?;
                for (site, reason) in generated.uncertainties {
                    self.recover(lost, Lost::Objects, Err::<(), _>(Stop::unknown(site, reason)))?;
                }
                generated.file
            }
        };
        if has_file {
            flux::complete(&mut file.kustomization);
        }
        let exists = |entry: &str| self.tree.locate(loader.root, entry).is_ok();
        let (own, findings) = flux::merge(&mut file, &self.options.flux, &exists);
        self.all(findings, Lost::Changes, lost)?;
        Ok((Arc::new(file), Some(Own::Flux(own))))
    }

    /// Returns the kustomization file of the built folder with the changes that Argo CD makes. Also returns a record of
    /// the fields that come from the Argo CD Application. If the file is incomplete because of errors, records in
    /// `lost` which kind of data is missing.
    fn argo_file(&mut self, loader: &Loader<'_>, lost: &mut Lost) -> Step<(SharedFile, Option<Own>)> {
        let mut file = Arc::unwrap_or_clone(self.kustomization(loader, None)?);
        let (own, findings) = argo::merge(&mut file, &self.options.argo, self.tree, loader.root);
        self.all(findings, Lost::Changes, lost)?;
        Ok((Arc::new(file), Some(Own::Argo(own))))
    }

    /// Records each finding as an error of the build. A build that stops at its first error returns the first finding
    /// as an error instead.
    ///
    /// `lost` is the kind of data that is missing from the build. If there are findings, the data `more` is missing
    /// too, and `lost` is set to the greater of both.
    fn all(&self, findings: Vec<TreeFinding>, more: Lost, lost: &mut Lost) -> Step<()> {
        for finding in findings {
            self.recover(&mut Lost::Nothing, Lost::Nothing, Err::<(), _>(Stop::refused(finding)))?;
            *lost = more.max(*lost);
        }
        Ok(())
    }

    /// Runs the steps at the end of the whole build: appends hashes, updates name references, resolves vars, drops
    /// local objects (`config.kubernetes.io/local-config`), sorts, and sets annotations.
    fn finish(&mut self, target: &Target<'_>, acc: Accumulator, settings: &Settings) -> Step<ResMap> {
        let Accumulator { mut map, config, vars, .. } = acc;
        let site = Site::of_file(target.file.path.clone());
        map.scope = self.scope();
        transformer::append_hashes(self, &mut map)?;
        self.check_identities(&mut map)?;
        self.observe(&map, "hashes", &site);
        let looked_up = self.looked_up(map.resources());
        self.recover(&mut map.lost, Lost::Nothing, looked_up)?;
        name_references::fix(self, &mut map, &config.name_reference)?;
        self.observe(&map, "name references", &site);
        self.resolve_vars(&vars, &mut map, &config.var_reference)?;
        self.observe(&map, "vars", &site);
        finish::drop_local(&mut map, self)?;
        let sorted = self.sort(&mut map, target, settings);
        self.recover(&mut map.lost, Lost::Nothing, sorted)?;
        let kustomization = &target.file.kustomization;
        let wants = |word: &str| kustomization.build_metadata.iter().any(|own| own == word);
        if settings.managed_by_label || wants("managedByLabel") {
            finish::managed_by(&mut map);
        }
        finish::annotations(&mut map, self, wants("originAnnotations"), wants("transformerAnnotations"))?;
        Ok(map)
    }

    /// Checks that the previous identities of each object can be read. kustomize reads these identities each time it
    /// searches for objects.
    ///
    /// # Errors
    ///
    /// If the previous identities of an object cannot be read, for example because it has more previous names than
    /// previous kinds. Only a build that stops at its first error returns this error.
    pub(super) fn check_identities(&self, map: &mut ResMap) -> Step<()> {
        let mut lost = map.lost;
        if map.resources().iter().all(|resource| resource.unreadable_identities().is_none()) {
            return Ok(());
        }
        for resource in map.resources_mut() {
            let Some(message) = resource.unreadable_identities() else { continue };
            resource.forget_identities();
            let stop = Stop::of_content(kz031::found(self.site_of(resource.origin), message));
            self.recover_object(resource, &mut lost, Err(stop))?;
        }
        map.lost = lost;
        Ok(())
    }

    /// Sorts the objects in the order that the kustomization or the command line sets.
    fn sort(&self, map: &mut ResMap, target: &Target<'_>, settings: &Settings) -> Step<()> {
        let field = FieldPath::of(["sortOptions"]);
        let site = |key: &str| target.site(field.key(key));
        let ranks = match &target.file.kustomization.sort_options {
            None if settings.reorder == Reorder::None => return Ok(()),
            None => Ranks::default(),
            Some(options) => match (options.order.as_str(), &options.legacy_sort_options) {
                ("fifo", None) => return Ok(()),
                ("fifo", Some(_)) => return Err(Stop::refused(kz017::invalid_legacy_sort(site("legacySortOptions")))),
                ("legacy", None) => Ranks::default(),
                ("legacy", Some(legacy)) => {
                    let list = |key: &str| serde_json::from_value(legacy[key].clone()).unwrap_or_default();
                    Ranks::new(list("orderFirst"), list("orderLast"))
                }
                (other, _) => return Err(Stop::refused(kz017::unknown_sort_order(site("order"), other))),
            },
        };
        sort::legacy(map, &ranks);
        self.sorted(map)
    }

    /// Reports objects with the same identity. kustomize detects them when it collects the objects again after sorting.
    fn sorted(&self, map: &ResMap) -> Step<()> {
        let has_order = !matches!(self.options.profile, Profile::Fleet | Profile::Sveltos);
        let duplicates = map.duplicates().into_iter().map(|(other, resource)| {
            let (site, id) = (self.site_of(resource.origin), resource.id(&map.scope));
            let stop = match has_order {
                true => Stop::of_content(kz030::conflict(site.clone(), &id, &site, Some(&self.site_of(other.origin)))),
                // kustomize fails only if it sorts, and the configuration of Fleet or Sveltos that sets the order is
                // unknown here
                false => Stop::unknown(site, format!("duplicate object {}", id.words())),
            };
            (stop, map.lost.max(resource.lost).max(other.lost))
        });
        for (stop, mut lost) in duplicates.collect::<Vec<_>>() {
            self.recover(&mut lost, Lost::Nothing, Err::<(), _>(stop))?;
        }
        Ok(())
    }

    /// Checks that all objects can be converted to YAML. For Flux, also checks the steps that Flux does after the
    /// build, such as the substitution of variables. Records each failed check as an error of the build.
    ///
    /// # Errors
    ///
    /// - If a limit is exceeded, such as the size of the YAML of all objects.
    /// - If a check fails, and the build stops at its first error.
    pub(super) fn check(&self, map: &mut ResMap) -> Step<()> {
        finish::check(map, self)?;
        if self.options.profile != Profile::Flux {
            return Ok(());
        }
        let objects = map.resources().iter().map(|resource| flux::Object {
            id: resource.id(&map.scope),
            node: &resource.node,
            origin: resource.origin,
            is_known: map.lost.max(resource.lost) != Lost::Changes,
        });
        let objects: Vec<_> = objects.collect();
        let place = |origin| self.site_of(origin);
        let built = flux::post_build(&objects, &place, self.options.flux.post_build.as_ref());
        self.all(built.findings, Lost::Nothing, &mut Lost::Nothing)?;
        for (site, reason) in built.uncertainties {
            self.recover(&mut Lost::Nothing, Lost::Nothing, Err::<(), _>(Stop::unknown(site, reason)))?;
        }
        self.report_renamed_namespaces(map);
        Ok(())
    }

    /// Reports Namespaces that `targetNamespace` of a Flux Kustomization renames.
    fn report_renamed_namespaces(&self, map: &ResMap) {
        let Some(target) = self.options.flux.target_namespace.as_deref() else { return };
        let is_renamed = |resource: &&Resource| {
            let gvk = resource.gvk();
            (gvk.group, gvk.kind) == ("", "Namespace")
                && resource.name() == target
                && resource.original_name() != target
        };
        for resource in map.resources().iter().filter(is_renamed) {
            let site = Site { field: FieldPath::of(["spec", "targetNamespace"]), ..self.site_of(resource.origin) };
            self.report(kz064::found(site, resource.original_name(), target));
        }
    }
}
