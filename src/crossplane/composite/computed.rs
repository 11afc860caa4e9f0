//! The environment of a composite, as far as it can be computed at admission.

use std::sync::Arc;

use serde_json::Value;

use super::claim::Subject;
use super::composition::{Choice, Chosen, choose};
use crate::admission::Request;
use crate::catalog::{Reference, Stored, View};
use crate::crossplane::composition;
use crate::crossplane::configs::Configs;
use crate::crossplane::environment::{
    Action, ActionOutcome, Computation, Declaration, Patch, PatchOutcome, PatchType, SourceOutcome, SourceType,
    compute, references,
};
use crate::crossplane::kinds::{self, COMPOSITIONS, REVISIONS};

/// The computed environment of a composite, with its inputs.
pub struct Computed {
    /// The Composition or revision that the composite uses.
    pub composition: Chosen,
    /// The environment that the Composition declares.
    pub declaration: Declaration,
    /// The result of the computation: the environment, the patched composite, and the result of each step.
    pub computation: Computation,
}

/// Computes the environment of `composite`. If `composite` is a claim, computes the environment of its composite.
/// `request` names the kind of `composite`. Returns `None` if it is unknown which Composition the composite uses, or if
/// the Composition declares no environment. Also returns `None` if the catalog does not contain all EnvironmentConfigs
/// yet.
pub fn computed(composite: &Value, request: &Request<'_>, view: &View<'_>) -> Option<Computed> {
    let configs = Configs::of(view);
    let Subject { composite, plural } = Subject::of(composite, request, view);
    let Choice::One(composition) = choose(&composite, &request.resource.group, &plural, view) else {
        return None;
    };
    let declaration = composition::declaration(composition.value()).filter(|_| configs.is_complete())?;
    let computation = compute(&declaration, &composite, &configs);
    Some(Computed { composition, declaration, computation })
}

/// Returns the environment of the composite or claim in a request; `None` in the same cases as [`computed`], for
/// example if the Composition declares no environment. Computes the environment only once, and all rules share the
/// result.
pub fn of_request(request: &Request<'_>, view: &View<'_>) -> Option<Arc<Computed>> {
    view.once(|| computed(request.object(), request, view).map(Arc::new))
}

/// Returns references to objects that a composite uses and selects by name, but that the catalog does not contain: the
/// Composition, the revision of the Composition, and EnvironmentConfigs. Omits EnvironmentConfigs that are selected by
/// labels. The caller reads the objects from the API server, because they may have been created after the last watch
/// event.
pub fn live_reads(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    let Subject { composite, plural } = Subject::of(request.object(), request, view);
    match choose(&composite, &request.resource.group, &plural, view) {
        Choice::Missing(name) => view.unless_found(&COMPOSITIONS, "", &name).into_iter().collect(),
        Choice::MissingRevision(name) => view.unless_found(&REVISIONS, "", &name).into_iter().collect(),
        Choice::NoRevision(_) | Choice::Open(_) => Vec::new(),
        Choice::One(composition) => {
            let sources = composition::sources(composition.value()).into_iter();
            let sources = sources.flat_map(|(_, selection)| selection.sources.unwrap_or_default());
            let named = sources.filter(|source| source.kind() == SourceType::Reference);
            let named = named.filter_map(|source| Some(source.reference?.name));
            let names = named.chain(references(&composite)).filter(|name| !name.is_empty());
            names.filter_map(|name| view.unless_found(kinds::served(view), "", &name)).collect()
        }
    }
}

impl Computed {
    /// Returns whether an unknown Composition function runs before a step that selects EnvironmentConfigs or applies
    /// patches. The function may change the environment in any way, so the result of this step is uncertain.
    pub fn is_uncertain(&self) -> bool {
        let is_other = |action: &Action| matches!(action, Action::Other);
        let mut steps = self.declaration.steps.iter().skip_while(|step| !is_other(&step.action));
        steps.any(|step| !is_other(&step.action))
    }

    /// Returns the results of the entries of `environmentConfigs`, which select EnvironmentConfigs. Each item has the
    /// index of the pipeline step, the index of the entry in this step, and the result of the entry.
    pub fn sources(&self) -> impl Iterator<Item = (usize, usize, &SourceOutcome)> {
        self.computation.steps.iter().flat_map(|step| {
            let sources = match &step.action {
                ActionOutcome::Selected { sources, .. } => sources.as_slice(),
                _ => &[],
            };
            sources.iter().enumerate().map(move |(at, source)| (step.step, at, source))
        })
    }

    /// Returns the EnvironmentConfigs that were merged, in merge order.
    pub fn selected(&self, view: &View<'_>) -> Vec<Arc<Stored>> {
        let configs = Configs::of(view);
        let mut found: Vec<Arc<Stored>> = Vec::new();
        for step in &self.computation.steps {
            let ActionOutcome::Selected { sources, kept, .. } = &step.action else { continue };
            found.extend(sources.iter().flat_map(|source| source.selected.iter().cloned()));
            found.extend(kept.iter().flatten().filter_map(|name| configs.find(name)));
        }
        found
    }

    /// Returns the patches that copy values from the environment to the composite, or from the composite to the
    /// environment, with their results. Each item starts with the index of the pipeline step and the index of the patch
    /// in this step.
    pub fn environment_patches(&self) -> impl Iterator<Item = (usize, usize, &Patch, &PatchOutcome)> {
        self.computation.steps.iter().flat_map(|step| {
            let declared = match &self.declaration.steps[step.step].action {
                Action::Patch(patches) => patches.environment.as_slice(),
                _ => &[],
            };
            let outcomes = match &step.action {
                ActionOutcome::Patched { environment, .. } => environment.as_slice(),
                _ => &[],
            };
            let pairs = declared.iter().zip(outcomes).enumerate();
            pairs.map(move |(at, (patch, outcome))| (step.step, at, patch, outcome))
        })
    }
}

/// Returns whether an entry of `environment.patches` reads the environment and writes the composite.
pub fn writes_composite(patch: &Patch) -> bool {
    use PatchType::{CombineToComposite, FromEnvironmentFieldPath, ToCompositeFieldPath};
    matches!(patch.kind(), ToCompositeFieldPath | CombineToComposite | FromEnvironmentFieldPath)
}

/// Returns whether a patch of a composed resource reads the environment.
pub fn reads_environment(patch: &Patch) -> bool {
    matches!(patch.kind(), PatchType::FromEnvironmentFieldPath | PatchType::CombineFromEnvironment)
}
