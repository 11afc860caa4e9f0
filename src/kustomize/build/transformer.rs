//! The built-in transformers, ready to run.

use std::collections::BTreeMap;

use super::affix::{Affix, Side};
use super::config::Specs;
use super::field_spec::{FieldError, FieldSpec};
use super::images::Images;
use super::json6902;
use super::namespace::{self, Namespace, Subjects};
use super::origin::OriginNote;
use super::patches::{self, Merging, Operations, Patch};
use super::resmap::ResMap;
use super::resource::Resource;
use super::run::Run;
use super::select::{Compiled, select};
use super::stop::{Failed, Step, Stop};
use super::value_add::ValueAdd;
use super::{hash, labels, replacements, replicas};
use crate::kustomize::file::{Image, PatchOptions, Replacement, Replica, Selector};
use crate::kustomize::finding::Site;
use crate::kustomize::node::Origin;
use crate::kustomize::schema::Preferred;

/// A transformer with its position.
#[derive(Debug, Clone)]
pub(super) struct Transformer {
    /// The kind of transformer.
    pub what: What,
    /// The entry that configures it.
    pub site: Site,
    /// The same, as nodes have it.
    pub origin: Origin,
    /// The same, if the build records which transformers ran.
    pub note: Option<OriginNote>,
}

/// The kinds of transformers, with the names of kustomize.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the fields are those of kustomize's configurations")]
pub(super) enum What {
    PatchStrategicMerge { patches: Vec<Resource> },
    Patch { patch: Patch, target: Option<Selector>, options: Option<PatchOptions> },
    PatchJson6902 { patch: json6902::Patch, target: Selector },
    Namespace { namespace: String, specs: Specs, unset_only: bool, subjects: Subjects },
    Prefix { prefix: String, specs: Specs },
    Suffix { suffix: String, specs: Specs },
    Label { labels: BTreeMap<String, String>, specs: Specs },
    Annotations { annotations: BTreeMap<String, String>, specs: Specs },
    ReplicaCount { replica: Replica, specs: Specs },
    ImageTag { image: Image, specs: Specs },
    Replacement { replacements: Vec<Replacement> },
    Hash,
    ValueAdd { value: ValueAdd },
}

impl Transformer {
    /// Runs it over all objects.
    ///
    /// # Errors
    ///
    /// If kustomize's fails.
    pub(super) fn run(&self, run: &Run<'_>, map: &mut ResMap) -> Step<()> {
        let failed = |failed: Failed| failed.at(self.site.clone());
        run.budget.steps(map.resources().len()).map_err(|exceeded| failed(exceeded.into()))?;
        match &self.what {
            What::PatchStrategicMerge { patches } => {
                run.beside.set(Some(Preferred::Custom));
                patches::merge_list(map, patches, &Merging::new(run, None)).map_err(failed)
            }
            What::Patch { patch, target, options } => self.patch(run, map, patch, target.as_ref(), options.as_ref()),
            What::PatchJson6902 { patch, target } => {
                let target = self.selector(target)?;
                let operations = Operations { patch, origin: self.origin, stores_id: false, budget: &run.budget };
                operations.apply(map, &target).map_err(failed)
            }
            What::Namespace { .. } => self.namespace(map),
            What::Prefix { prefix, specs } => self.affix(run, map, Side::Prefix, prefix, specs),
            What::Suffix { suffix, specs } => self.affix(run, map, Side::Suffix, suffix, specs),
            What::Label { labels: pairs, specs } | What::Annotations { annotations: pairs, specs } => {
                self.each(map, |resource| labels::set(resource, pairs, specs, self.origin))
            }
            What::ReplicaCount { replica, specs } => self.replicas(map, replica, specs),
            What::ImageTag { image, specs } => {
                let images = Images::new(image, specs, self.origin, &run.budget)
                    .map_err(|_| failed(format!("the image name `{}` is no regular expression", image.name).into()))?;
                self.each(map, |resource| images.apply(resource))
            }
            What::Replacement { replacements } => {
                replacements::apply(map, replacements, &run.budget).map_err(|(_, cause)| failed(cause))
            }
            What::Hash => self.hash(run, map),
            What::ValueAdd { value } => value.apply(map, &run.budget).map_err(failed),
        }
    }

    fn each(&self, map: &mut ResMap, mut change: impl FnMut(&mut Resource) -> Result<(), FieldError>) -> Step<()> {
        let scope = map.scope.clone();
        for resource in map.resources_mut() {
            change(resource).map_err(|error| self.field_error(error, &resource.id(&scope).to_string()))?;
        }
        Ok(())
    }

    fn field_error(&self, error: FieldError, id: &str) -> Stop {
        Failed::from(error).within(id).at(self.site.clone())
    }

    fn selector(&self, selector: &Selector) -> Step<Compiled> {
        let failed = |part: String| Stop::refused(self.site.clone(), format!("`{part}` is no selector"));
        Compiled::new(selector).map_err(failed)
    }

    fn patch(
        &self,
        run: &Run<'_>,
        map: &mut ResMap,
        patch: &Patch,
        target: Option<&Selector>,
        options: Option<&PatchOptions>,
    ) -> Step<()> {
        let failed = |failed: Failed| failed.at(self.site.clone());
        if matches!(patch, Patch::Strategic(objects) if !objects.is_empty()) {
            run.beside.set(Some(Preferred::Custom));
        }
        let merging = Merging::new(run, options);
        match (patch, target) {
            (Patch::Strategic(objects), _) if objects.is_empty() => Ok(()),
            (Patch::Strategic(objects), None) => patches::merge_by_id(map, objects, &merging).map_err(failed),
            (Patch::Strategic(objects), Some(target)) => {
                let [object] = objects.as_slice() else {
                    return Err(failed("several objects in one patch must not have a target".into()));
                };
                let places = select(map.resources(), &self.selector(target)?, &map.scope);
                patches::merge_into(map, &places, object, &merging).map_err(failed)
            }
            (Patch::Json(operations), _) if operations.is_empty() => Ok(()),
            (Patch::Json(_), None) => Err(failed("a JSON patch must have a target".into())),
            (Patch::Json(operations), Some(target)) => {
                let target = self.selector(target)?;
                let operations =
                    Operations { patch: operations, origin: self.origin, stores_id: true, budget: &run.budget };
                operations.apply(map, &target).map_err(failed)
            }
        }
    }

    fn namespace(&self, map: &mut ResMap) -> Step<()> {
        let What::Namespace { namespace, specs, unset_only, subjects } = &self.what else { return Ok(()) };
        if namespace.is_empty() {
            return Ok(());
        }
        let scope = map.scope.clone();
        let transformer =
            Namespace { namespace, specs, unset_only: *unset_only, subjects: *subjects, origin: self.origin };
        let mut clash = super::clash::Clash::new(map);
        for (at, resource) in map.resources_mut().iter_mut().enumerate() {
            if resource.node.is_null_or_empty() || namespace::is_from_helm(resource) {
                continue;
            }
            resource.store_previous_id(&scope);
            let applied = transformer.apply(resource, &scope);
            applied.map_err(|error| self.field_error(error, &resource.id(&scope).to_string()))?;
            if clash.moved(at, resource) {
                let message = format!("namespace transformation produces ID conflict: {}", resource.id(&scope));
                return Err(Stop::refused(self.site.clone(), message));
            }
        }
        Ok(())
    }

    fn affix(&self, run: &Run<'_>, map: &mut ResMap, side: Side, text: &str, specs: &[FieldSpec]) -> Step<()> {
        let scope = map.scope.clone();
        let affix = Affix { side, text, specs, origin: self.origin, budget: &run.budget };
        self.each(map, |resource| affix.apply(resource, &scope))
    }

    fn replicas(&self, map: &mut ResMap, replica: &Replica, specs: &Specs) -> Step<()> {
        let has_found = replicas::set(map, replica, specs, self.origin);
        match has_found.map_err(|error| self.field_error(error, &replica.name))? {
            true => Ok(()),
            false => Err(Stop::refused(
                self.site.clone(),
                format!("resource with name {} does not match any kind that has replicas", replica.name),
            )),
        }
    }

    /// Appends hashes to the names of objects that request one.
    fn hash(&self, run: &Run<'_>, map: &mut ResMap) -> Step<()> {
        append_hashes(run, map)
    }
}

/// Appends hashes to the names of objects that request one.
///
/// # Errors
///
/// If the data of an object cannot be printed.
pub(super) fn append_hashes(run: &Run<'_>, map: &mut ResMap) -> Step<()> {
    if !map.resources().iter().any(|resource| resource.needs_hash) {
        return Ok(());
    }
    let scope = map.scope.clone();
    for resource in map.resources_mut().iter_mut().filter(|resource| resource.needs_hash) {
        let site = || run.site_of(resource.node.origin);
        let hash = hash::of(resource).map_err(|error| Stop::refused(site(), error.kind.to_string()))?;
        let Some(hash) = hash else {
            let message = format!("the hash of a {} depends on how kustomize keeps its nodes", resource.kind());
            return Err(Stop::unknown(site(), message));
        };
        resource.store_previous_id(&scope);
        let name = format!("{}-{hash}", resource.name());
        resource.set_name(&name);
    }
    Ok(())
}
