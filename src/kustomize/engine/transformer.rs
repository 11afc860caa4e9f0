//! Runs kustomize's built-in transformers. The settings of a transformer are in an entry of a kustomization or in a
//! plugin configuration.

use std::collections::BTreeMap;

use super::affix::{Affix, Side};
use super::config::Specs;
use super::field_spec::{FieldError, FieldSpec};
use super::images::Images;
use super::json6902;
use super::lost::Lost;
use super::namespace::{self, Namespace, Subjects};
use super::origin::OriginNote;
use super::patch::Patch;
use super::patches::{Merging, Operations};
use super::replacements::Sited;
use super::resmap::ResMap;
use super::resource::Resource;
use super::run::Run;
use super::select::{Compiled, select};
use super::stop::{Failed, Step, Stop};
use super::value_add::ValueAdd;
use super::{hash, labels, replicas};
use crate::kustomize::file::{Image, PatchOptions, Replica, Selector};
use crate::kustomize::finding::Site;
use crate::kustomize::node::Origin;
use crate::kustomize::rules::{kz013, kz014, kz025, kz030};

/// A transformer with the position of the entry or object that configures it.
#[derive(Debug, Clone)]
pub(super) struct Transformer {
    /// The built-in transformer of kustomize that runs, with its settings.
    pub what: What,
    /// The position of the entry or object that configures the transformer.
    pub site: Site,
    /// File and line of the entry or object that configures the transformer. Nodes that the transformer changes get
    /// this origin.
    pub origin: Origin,
    /// The transformer, as the annotation `alpha.config.kubernetes.io/transformations` lists it. `None` if the build
    /// does not record the transformers that ran.
    pub note: Option<OriginNote>,
}

/// A transformer of kustomize with its settings. The variants have kustomize's names.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the fields are those of kustomize's configurations")]
pub(super) enum What {
    PatchStrategicMerge {
        patches: Vec<(Resource, Site)>,
    },
    Patch {
        patch: Patch,
        target: Option<Selector>,
        options: Option<PatchOptions>,
    },
    PatchJson6902 {
        patch: json6902::Patch,
        target: Selector,
    },
    Namespace {
        namespace: String,
        specs: Specs,
        unset_only: bool,
        subjects: Subjects,
    },
    Prefix {
        prefix: String,
        specs: Specs,
    },
    Suffix {
        suffix: String,
        specs: Specs,
    },
    Label {
        labels: BTreeMap<String, String>,
        specs: Specs,
    },
    Annotations {
        annotations: BTreeMap<String, String>,
        specs: Specs,
    },
    ReplicaCount {
        replica: Replica,
        specs: Specs,
    },
    ImageTag {
        image: Image,
        specs: Specs,
    },
    Replacement {
        replacements: Vec<Sited>,
    },
    Hash,
    ValueAdd {
        value: ValueAdd,
    },
    /// A placeholder for a transformer whose configuration contains an error. It changes no objects, and records that
    /// changes are missing.
    LeftOut,
}

impl Transformer {
    /// Runs the transformer on all objects.
    ///
    /// # Errors
    ///
    /// If the transformer fails in kustomize, if its result is unknown, or if a limit is exceeded. A build that
    /// continues after errors records the errors of single objects instead of returning them.
    pub(super) fn run(&self, run: &Run<'_>, map: &mut ResMap) -> Step<()> {
        let steps = run.budget.steps(map.resources().len());
        steps.map_err(|exceeded| Stop::limit(self.site.clone(), exceeded))?;
        match &self.what {
            What::PatchStrategicMerge { patches } => {
                let merge = |(patch, site): &(Resource, Site)| Merging::new(run, site, None).merge_listed(map, patch);
                patches.iter().try_for_each(merge)
            }
            What::Patch { patch, target, options } => self.patch(run, map, patch, target.as_ref(), options.as_ref()),
            What::PatchJson6902 { patch, target } => self.operations(run, map, patch, target, false),
            What::Namespace { .. } => self.namespace(run, map),
            What::Prefix { prefix, specs } => self.affix(run, map, Side::Prefix, prefix, specs),
            What::Suffix { suffix, specs } => self.affix(run, map, Side::Suffix, suffix, specs),
            What::Label { labels: pairs, specs } | What::Annotations { annotations: pairs, specs } => {
                self.each(run, map, |resource| labels::set(resource, pairs, specs, self.origin))
            }
            What::ReplicaCount { replica, specs } => self.replicas(run, map, replica, specs),
            What::ImageTag { image, specs } => {
                let images = Images::new(image, specs, self.origin, &run.budget)
                    .map_err(|_| Stop::refused(kz014::invalid_expression(self.site.clone(), &image.name)))?;
                self.each(run, map, |resource| images.apply(resource))
            }
            What::Replacement { replacements } => replacements.iter().try_for_each(|replacement| {
                run.check_identities(map)?;
                let replaced = replacement.apply(run, map);
                run.recover(&mut map.lost, Lost::Nothing, replaced).map(drop)
            }),
            What::Hash => append_hashes(run, map),
            What::ValueAdd { value } => value.apply(run, map, &self.site),
            What::LeftOut => {
                map.lost = Lost::Changes;
                Ok(())
            }
        }
    }

    /// Calls `change` on every object. If `change` fails, adds the identity of the object to the error message.
    fn each(
        &self,
        run: &Run<'_>,
        map: &mut ResMap,
        mut change: impl FnMut(&mut Resource) -> Result<(), FieldError>,
    ) -> Step<()> {
        let (scope, mut lost) = (map.scope.clone(), map.lost);
        for resource in map.resources_mut() {
            let changed = change(resource);
            let changed = changed.map_err(|error| self.field_error(error, &resource.id(&scope).to_string()));
            run.recover_object(resource, &mut lost, changed)?;
        }
        map.lost = lost;
        Ok(())
    }

    fn field_error(&self, error: FieldError, id: &str) -> Stop {
        Failed::from(error).within(id).at(self.site.clone())
    }

    /// Returns the indexes of the objects that the field `target` of a patch selects. If it selects none, records a
    /// finding, except in these cases:
    ///
    /// - An earlier error may be the reason why no object is selected.
    /// - An object in a file, such as a `PatchTransformer`, configures the patch.
    /// - The build stops at its first error. Such a build does not return findings.
    fn selected(&self, run: &Run<'_>, map: &mut ResMap, target: &Selector) -> Step<Vec<usize>> {
        let compiled = Compiled::new(target).map_err(|bad| bad.at(self.site.clone()))?;
        run.check_identities(map)?;
        let places = select(map.resources(), &compiled, &map.scope).map_err(|bad| bad.at(self.site.clone()))?;
        let is_known = || map.lost == Lost::Nothing && map.resources().iter().all(|one| one.lost == Lost::Nothing);
        if places.is_empty() && !run.is_strict && !self.site.field.is_root() && is_known() {
            let site = Site { field: self.site.field.key("target"), ..self.site.clone() };
            let is_general = target.name.is_empty() && self.is_of_component(run);
            let finding = kz025::found(site, target);
            run.report(if is_general || map.has_placeholder { kz025::unimportant(finding) } else { finding });
        }
        Ok(places)
    }

    /// Returns whether the transformer is configured in a Component. Several kustomizations may use the same Component,
    /// so it may be intended that a patch in the Component matches objects in only some of them.
    fn is_of_component(&self, run: &Run<'_>) -> bool {
        let file = run.files.kustomization(run.tree, &self.site.file);
        file.is_ok_and(|file| file.kustomization.is_component())
    }

    fn patch(
        &self,
        run: &Run<'_>,
        map: &mut ResMap,
        patch: &Patch,
        target: Option<&Selector>,
        options: Option<&PatchOptions>,
    ) -> Step<()> {
        let merging = Merging::new(run, &self.site, options);
        match (patch, target) {
            (Patch::Strategic(objects), _) if objects.is_empty() => Ok(()),
            (Patch::Strategic(objects), None) => objects.iter().try_for_each(|object| merging.merge_by_id(map, object)),
            (Patch::Strategic(objects), Some(target)) => {
                let [object] = objects.as_slice() else {
                    return Err(Stop::refused(kz014::several_patches(self.site.clone())));
                };
                let places = self.selected(run, map, target)?;
                merging.merge_into(map, &places, object)
            }
            (Patch::Json(operations), _) if operations.is_empty() => Ok(()),
            (Patch::Json(_), None) => Err(Stop::refused(kz014::missing_target(self.site.clone()))),
            (Patch::Json(operations), Some(target)) => self.operations(run, map, operations, target, true),
        }
    }

    fn operations(
        &self,
        run: &Run<'_>,
        map: &mut ResMap,
        patch: &json6902::Patch,
        target: &Selector,
        stores_id: bool,
    ) -> Step<()> {
        let places = self.selected(run, map, target)?;
        Operations { run, patch, site: &self.site, origin: self.origin, stores_id }.apply(map, &places)
    }

    fn namespace(&self, run: &Run<'_>, map: &mut ResMap) -> Step<()> {
        let What::Namespace { namespace, specs, unset_only, subjects } = &self.what else { return Ok(()) };
        if namespace.is_empty() {
            return Ok(());
        }
        let (scope, mut lost) = (map.scope.clone(), map.lost);
        let transformer =
            Namespace { namespace, specs, unset_only: *unset_only, subjects: *subjects, origin: self.origin };
        let mut clash = super::clash::Clash::new(map);
        for (at, resource) in map.resources_mut().iter_mut().enumerate() {
            if resource.node.is_null_or_empty() || namespace::is_from_helm(resource) {
                continue;
            }
            resource.store_previous_id(&scope);
            let applied = transformer.apply(resource, &scope);
            let applied = applied.map_err(|error| self.field_error(error, &resource.id(&scope).to_string()));
            run.recover_object(resource, &mut lost, applied)?;
            if clash.moved(at, resource) {
                let before = resource.previous_ids().last().map(|id| id.words()).unwrap_or_default();
                let made = run.site_of(resource.origin);
                let same = kz030::same_in_namespace(self.site.clone(), &resource.id(&scope), &before, &made);
                let mut own = lost.max(resource.lost);
                run.recover(&mut own, Lost::Nothing, Err::<(), _>(Stop::of_content(same)))?;
            }
        }
        map.lost = lost;
        Ok(())
    }

    fn affix(&self, run: &Run<'_>, map: &mut ResMap, side: Side, text: &str, specs: &[FieldSpec]) -> Step<()> {
        run.check_identities(map)?;
        let scope = map.scope.clone();
        let affix = Affix { side, text, specs, origin: self.origin, budget: &run.budget };
        self.each(run, map, |resource| affix.apply(resource, &scope))
    }

    fn replicas(&self, run: &Run<'_>, map: &mut ResMap, replica: &Replica, specs: &Specs) -> Step<()> {
        run.check_identities(map)?;
        let has_found = replicas::set(map, replica, specs, self.origin);
        if has_found.map_err(|error| self.field_error(error, &replica.name))? {
            return Ok(());
        }
        let has_replicas = |resource: &&Resource| specs.iter().any(|spec| resource.gvk().is_selected(&spec.gvk()));
        let names: Vec<&str> = map.resources().iter().filter(has_replicas).map(Resource::name).collect();
        let absent = Stop::of_absence(kz030::no_object_to_scale(self.site.clone(), &replica.name, &names));
        run.recover(&mut map.lost, Lost::Nothing, Err::<(), _>(absent)).map(drop)
    }

    /// Returns short descriptions of the effects of the transformer, such as `namespace shop`. They appear in the
    /// recorded steps of the build.
    pub(super) fn words(&self) -> Vec<String> {
        let field = &self.site.field;
        let count = |count: usize, what: &str| match count {
            0 => Vec::new(),
            count => vec![format!("{count} {what}")],
        };
        match &self.what {
            What::LeftOut => Vec::new(),
            what if field.is_root() => vec![what.name().to_owned()],
            What::PatchStrategicMerge { patches } => {
                patches.iter().map(|(_, site)| format!("patch {}", site.field)).collect()
            }
            What::Patch { patch: Patch::Strategic(objects), .. } if objects.is_empty() => Vec::new(),
            What::Patch { patch: Patch::Strategic(_), .. } => vec![format!("patch {field}")],
            What::Patch { patch: Patch::Json(operations), .. } if operations.is_empty() => Vec::new(),
            What::Patch { .. } | What::PatchJson6902 { .. } => vec![format!("JSON patch {field}")],
            What::Namespace { namespace, .. } => vec![format!("namespace {namespace}")],
            What::Prefix { prefix, .. } => vec![format!("namePrefix {prefix}")],
            What::Suffix { suffix, .. } => vec![format!("nameSuffix {suffix}")],
            What::Label { labels, .. } => count(labels.len(), "labels"),
            What::Annotations { annotations, .. } => count(annotations.len(), "annotations"),
            What::ReplicaCount { replica, .. } => vec![format!("replicas of {}", replica.name)],
            What::ImageTag { image, .. } => vec![format!("image {}", image.name)],
            What::Replacement { replacements } => {
                replacements.iter().map(|sited| format!("replacement {}", sited.site.field)).collect()
            }
            What::Hash | What::ValueAdd { .. } => vec![self.what.name().to_owned()],
        }
    }
}

/// Appends a hash of the content to the names of objects that need one, such as generated ConfigMaps.
///
/// # Errors
///
/// - If the data of an object cannot be converted to JSON.
/// - If the object is not a ConfigMap or Secret, because the hash that kustomize computes for other kinds cannot be
///   reproduced here.
///
/// Only a build that stops at its first error returns these errors.
pub(super) fn append_hashes(run: &Run<'_>, map: &mut ResMap) -> Step<()> {
    if !map.resources().iter().any(|resource| resource.needs_hash) {
        return Ok(());
    }
    let (scope, mut lost) = (map.scope.clone(), map.lost);
    for resource in map.resources_mut().iter_mut().filter(|resource| resource.needs_hash) {
        let hash = hash_of(run, resource, &resource.id(&scope).words());
        let appended = hash.map(|hash| {
            resource.store_previous_id(&scope);
            let name = format!("{}-{hash}", resource.name());
            resource.set_name(&name);
        });
        run.recover_object(resource, &mut lost, appended)?;
    }
    map.lost = lost;
    Ok(())
}

fn hash_of(run: &Run<'_>, resource: &Resource, words: &str) -> Step<String> {
    let hash = hash::of(resource)
        .map_err(|error| Stop::of_content(kz013::unprintable(run.site_of(error.origin), words, &error)))?;
    hash.ok_or_else(|| {
        let message = format!("the hash of a {} depends on the internal representation in kustomize", resource.kind());
        Stop::unknown(run.site_of(resource.origin), message)
    })
}
