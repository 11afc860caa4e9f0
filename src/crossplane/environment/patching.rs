//! Applies all patches between a composite, its environment and its composed resources. The order is the same as in
//! Crossplane and function-patch-and-transform.

use serde_json::Value;

use super::apply::{Ending, PatchOutcome, apply};
use super::document::{Document, MAX_WRITTEN, overlay};
use super::select::loaded;
use super::{Patch, PatchSet, PatchType, Patches, Profile, Template};
use crate::go::{integers, quote};

/// The state of a composite and its environment while patches are applied.
///
/// Crossplane up to 1.17 reads and writes the same composite. function-patch-and-transform reads the observed composite
/// and writes a desired composite. At the end, Crossplane applies the desired composite over the observed one.
#[derive(Debug, Clone)]
pub struct Patching {
    profile: Profile,
    environment: Document,
    observed: Document,
    desired: Document,
    left: usize,
}

/// The result of patching a composed resource.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplateOutcome {
    /// The name of the composed resource; empty if it has none.
    pub name: String,
    /// The patches of the composed resource, including those of patch sets, in the order in which they are applied.
    pub patches: Vec<(Patch, PatchOutcome)>,
    /// The resource before it is patched.
    pub base: Value,
    /// The composed resource after its patches, or the error message if a patch failed. Patches that read the composed
    /// resource from the cluster, such as `ToCompositeFieldPath`, are not applied.
    pub rendered: Result<Value, String>,
}

impl Patching {
    /// Creates the initial state, in which no patch has been applied yet. `environment` is the merged data of
    /// EnvironmentConfigs, with the `apiVersion` and `kind` that [`super::with_kind`] adds. It is `null` if nothing has
    /// been merged yet.
    pub fn new(profile: Profile, environment: Value, composite: &Value) -> Self {
        let observed = Document::new(loaded(profile, composite));
        let desired = match profile {
            Profile::Native117 => Document::new(Value::Null),
            Profile::Function => {
                let keep = ["apiVersion", "kind"].into_iter();
                let members = keep.filter_map(|key| Some((key.to_owned(), composite.get(key)?.clone())));
                Document::new(members.collect())
            }
        };
        Self { profile, environment: Document::new(environment), observed, desired, left: MAX_WRITTEN }
    }

    /// Returns the environment with the changes of all patches that were applied so far.
    pub fn environment(&self) -> &Value {
        &self.environment.value
    }

    /// Replaces the environment, for example with the data that a step merged from EnvironmentConfigs.
    pub fn set_environment(&mut self, environment: Value) {
        self.environment = Document::new(environment);
    }

    /// Returns the composite from which patches read values. For Crossplane up to 1.17, patches also write to this
    /// composite. For function-patch-and-transform, they write to a second composite, which `desired` returns.
    pub fn observed(&self) -> &Value {
        &self.observed.value
    }

    /// Returns the composite to which patches write. For Crossplane up to 1.17, this is the composite itself. For
    /// function-patch-and-transform, it is the desired composite.
    pub fn desired(&self) -> &Value {
        match self.profile {
            Profile::Native117 => &self.observed.value,
            Profile::Function => &self.desired.value,
        }
    }

    /// Returns the composite with the changes of all patches that were applied so far.
    pub fn composite(&self) -> Value {
        let mut composite = integers(self.observed.value.clone());
        if self.profile == Profile::Function {
            overlay(&mut composite, &self.desired.value);
        }
        composite
    }

    /// Applies the patches of `environment.patches` in order, and stops at the first failure. Returns the outcome of
    /// each patch, including the failed one. If a patch fails, also returns the error message that Crossplane or
    /// function-patch-and-transform would report.
    pub fn environment_patches(&mut self, patches: &[Patch]) -> (Vec<PatchOutcome>, Option<String>) {
        let mut outcomes = Vec::with_capacity(patches.len());
        for (at, patch) in patches.iter().enumerate() {
            let outcome = self.environment_patch(patch);
            let failure = outcome.failure().map(|error| match self.profile {
                Profile::Native117 => format!("cannot apply environment patch at index {at}: {error}"),
                Profile::Function => {
                    let kind = patch.kind();
                    format!("cannot apply the {} environment patch at index {at}: {error}", quote(kind.as_str()))
                }
            });
            outcomes.push(outcome);
            if failure.is_some() {
                return (outcomes, failure);
            }
        }
        (outcomes, None)
    }

    fn environment_patch(&mut self, patch: &Patch) -> PatchOutcome {
        let Self { profile, environment, observed, desired, left } = self;
        // In Crossplane up to 1.17 only the schema sets the default type.
        let kind = if *profile == Profile::Native117 { patch.patch_type.clone() } else { patch.kind() };
        let is_function = *profile == Profile::Function;
        let is_into = match kind {
            PatchType::FromCompositeFieldPath | PatchType::CombineFromComposite => true,
            PatchType::ToEnvironmentFieldPath if is_function => true,
            PatchType::ToCompositeFieldPath | PatchType::CombineToComposite => false,
            PatchType::FromEnvironmentFieldPath if is_function => false,
            other => {
                let why = format!("type {} has no effect in environment.patches", quote(other.as_str()));
                return PatchOutcome::of(Ending::Ignored(why));
            }
        };
        match (is_into, is_function) {
            (true, _) => apply(*profile, patch, &observed.value, environment, left),
            (false, false) => apply(*profile, patch, &environment.value, observed, left),
            (false, true) => apply(*profile, patch, &environment.value, desired, left),
        }
    }

    /// Renders the composed resources in order. The order matters, because a resource may read values that an earlier
    /// resource wrote into the environment.
    ///
    /// # Errors
    /// If a patch set does not exist or contains another patch set, or if a patch of type `PatchSet` names no patch
    /// set. Then no resource is rendered. The failure of a single patch is in [`TemplateOutcome::rendered`].
    pub fn templates(&mut self, patches: &Patches) -> Result<Vec<TemplateOutcome>, String> {
        let inlined: Result<Vec<_>, _> =
            patches.templates.iter().map(|template| inlined(template, &patches.patch_sets)).collect();
        Ok(patches.templates.iter().zip(inlined?).map(|(template, patches)| self.template(template, patches)).collect())
    }

    fn template(&mut self, template: &Template, patches: Vec<Patch>) -> TemplateOutcome {
        let mut composed = Document::new(template.base.clone());
        let mut outcomes = Vec::with_capacity(patches.len());
        let mut failure = None;
        for (at, patch) in patches.into_iter().enumerate() {
            if failure.is_some() {
                break;
            }
            let outcome = self.composed_patch(&patch, &mut composed);
            failure = outcome.failure().map(|error| match self.profile {
                Profile::Native117 => format!("cannot apply the patch at index {at}: {error}"),
                Profile::Function => {
                    format!("cannot apply the {} patch at index {at}: {error}", quote(patch.kind().as_str()))
                }
            });
            outcomes.push((patch, outcome));
        }
        TemplateOutcome {
            name: template.name.clone().unwrap_or_default(),
            patches: outcomes,
            base: template.base.clone(),
            rendered: failure.map_or(Ok(composed.value), Err),
        }
    }

    fn composed_patch(&mut self, patch: &Patch, composed: &mut Document) -> PatchOutcome {
        if composed.value.is_null() {
            let why = "another step of the pipeline creates the composed resource".to_owned();
            return PatchOutcome::of(Ending::Deferred(why));
        }
        let Self { profile, environment, observed, left, .. } = self;
        match patch.kind() {
            PatchType::FromCompositeFieldPath | PatchType::CombineFromComposite => {
                apply(*profile, patch, &observed.value, composed, left)
            }
            PatchType::FromEnvironmentFieldPath | PatchType::CombineFromEnvironment => {
                apply(*profile, patch, &environment.value, composed, left)
            }
            PatchType::ToEnvironmentFieldPath | PatchType::CombineToEnvironment if *profile == Profile::Native117 => {
                apply(*profile, patch, &composed.value, environment, left)
            }
            PatchType::ToCompositeFieldPath
            | PatchType::CombineToComposite
            | PatchType::ToEnvironmentFieldPath
            | PatchType::CombineToEnvironment => {
                let why = "it is applied when the composed resource exists".to_owned();
                PatchOutcome::of(Ending::Deferred(why))
            }
            PatchType::PatchSet | PatchType::Other(_) => {
                let why = format!("unknown type {}", quote(patch.patch_type.as_str()));
                PatchOutcome::of(Ending::Ignored(why))
            }
        }
    }
}

/// Returns the patches of a composed resource. Each reference to a patch set is replaced with the patches of this set.
/// Fails if the set does not exist, or if a patch set contains a reference to another set.
fn inlined(template: &Template, sets: &[PatchSet]) -> Result<Vec<Patch>, String> {
    if sets.iter().flat_map(|set| &set.patches).any(|patch| patch.kind() == PatchType::PatchSet) {
        return Err("a patch in a PatchSet cannot be of type PatchSet".to_owned());
    }
    let mut patches = Vec::with_capacity(template.patches.len());
    for patch in &template.patches {
        if patch.kind() != PatchType::PatchSet {
            patches.push(patch.clone());
            continue;
        }
        let name = patch.patch_set_name.as_ref().ok_or("PatchSetName is required by type PatchSet")?;
        // If two sets have the same name, the last one wins.
        let set = sets.iter().rev().find(|set| set.name == *name);
        patches.extend_from_slice(&set.ok_or_else(|| format!("cannot find PatchSet by name {name}"))?.patches);
    }
    Ok(patches)
}
