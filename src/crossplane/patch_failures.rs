//! Finds patches of a Composition that fail for every composite, because of data that is the same for all composites.
//! For example, the data comes from an EnvironmentConfig that the Composition selects by name.

use serde_json::{Value, json};

use super::composite::computed::{reads_environment, writes_composite};
use super::composition;
use super::environment::{
    Action, ActionOutcome, Configs, Declaration, EnvironmentSource, LabelMatcherType, Patch, PatchOutcome, Patches,
    Profile, Selection, SourceType, Step, Template, compute, select,
};
use super::field_path::Path;
use crate::admission::FieldPath;

/// Maximum number of patches of one Composition that Portcullis tests for failures. Portcullis computes an environment
/// for each of these patches, so testing more would take too long.
const MAX_PATCHES: usize = 500;

/// A patch that fails for every composite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchFailure {
    /// The position of the patch in the Composition, such as `spec.resources[0].patches[1]`.
    pub patch: FieldPath,
    /// Crossplane's error message for the patch.
    pub why: String,
}

/// Returns the patches of `composition` that fail for every composite. Each patch is evaluated with
/// those EnvironmentConfigs of `configs` that the Composition selects for every composite. Patches that fail only
/// because data is missing are not returned.
pub fn failing_patches(composition: &Value, configs: &(impl Configs + ?Sized)) -> Vec<PatchFailure> {
    let Some(declaration) = composition::declaration(composition) else { return Vec::new() };
    let mut evaluation =
        Evaluation { profile: declaration.profile, configs, before: Vec::new(), left: MAX_PATCHES, found: Vec::new() };
    for step in &declaration.steps {
        match &step.action {
            Action::Select(selection) => evaluation.select(step, selection),
            Action::Patch(patches) => evaluation.patches(step, patches),
            // The result of an unknown function cannot be computed.
            Action::Other => break,
        }
    }
    evaluation.found
}

struct Evaluation<'t, C: ?Sized> {
    profile: Profile,
    configs: &'t C,
    /// The earlier steps of the Composition that select EnvironmentConfigs. Portcullis runs these steps before it tests
    /// a patch. Sources whose selection depends on the composite are removed from these steps.
    before: Vec<Step>,
    left: usize,
    found: Vec<PatchFailure>,
}

impl<C: Configs + ?Sized> Evaluation<'_, C> {
    /// Adds `step` to `self.before`, the list of steps that run before each later patch. The step selects
    /// EnvironmentConfigs, and `selection` contains the sources of the step. Removes these sources from the added step:
    ///
    /// * a source that may select different EnvironmentConfigs for different composites
    /// * a source that causes an error
    /// * a source that function-environment-configs skips
    fn select(&mut self, step: &Step, selection: &Selection) {
        let is_certain = |source: &EnvironmentSource| {
            let alone = Selection { sources: Some(vec![source.clone()]), ..selection.clone() };
            let sourced = select(self.profile, &alone, &Value::Null, self.configs);
            is_independent(source) && sourced.iter().all(|one| one.error.is_none() && one.asked)
        };
        let sources = selection.sources.as_ref();
        let sources = sources.map(|sources| sources.iter().filter(|source| is_certain(source)).cloned().collect());
        let selection = Selection { sources, ..selection.clone() };
        self.before.push(Step { action: Action::Select(selection), ..step.clone() });
    }

    fn patches(&mut self, step: &Step, patches: &Patches) {
        for (at, patch) in patches.environment.iter().enumerate().filter(|(_, patch)| writes_composite(patch)) {
            let field = step.field.key("environment").key("patches").index(at);
            self.patch(step, field, Patches { environment: vec![patch.clone()], ..Patches::default() });
        }
        for (at, template) in patches.templates.iter().enumerate() {
            let reading = |(_, patch): &(usize, &Patch)| reads_environment(patch);
            for (index, patch) in template.patches.iter().enumerate().filter(reading) {
                let field = step.field.key("resources").index(at).key("patches").index(index);
                let template = Template { patches: vec![patch.clone()], ..template.clone() };
                self.patch(step, field, Patches { templates: vec![template], ..Patches::default() });
            }
        }
    }

    /// Tests whether a patch fails for every composite of the Composition, and records the failure if it does.
    /// `patches` contains only this patch. `step` is its step, and `field` is its path in the Composition.
    ///
    /// The test first runs the earlier steps that select EnvironmentConfigs. Then it runs the patch with a composite
    /// whose `spec` is empty. It runs no other patches.
    fn patch(&mut self, step: &Step, field: FieldPath, patches: Patches) {
        let Some(left) = self.left.checked_sub(1) else { return };
        self.left = left;
        let mut steps = self.before.clone();
        steps.push(Step { action: Action::Patch(patches), ..step.clone() });
        let composite = json!({"apiVersion": "v1", "kind": "Composite", "metadata": {}, "spec": {}});
        let computation = compute(&Declaration { profile: self.profile, steps }, &composite, self.configs);
        let Some(outcome) = computation.steps.get(self.before.len()) else { return };
        let ActionOutcome::Patched { environment, templates } = &outcome.action else { return };
        let composed = templates.iter().flat_map(|template| template.patches.iter().map(|(_, outcome)| outcome));
        let failed = environment.iter().chain(composed).find_map(|one| {
            let why = one.failure()?;
            has_value(one, &outcome.environment).then(|| why.to_owned())
        });
        self.found.extend(failed.map(|why| PatchFailure { patch: field, why }));
    }
}

/// Returns whether `source`, an entry of `environmentConfigs`, selects the same EnvironmentConfigs for every composite.
fn is_independent(source: &EnvironmentSource) -> bool {
    let selector = source.selector.iter().flat_map(|selector| &selector.match_labels);
    source.kind() == SourceType::Reference
        || selector.into_iter().all(|matcher| matcher.kind() == LabelMatcherType::Value)
}

/// Returns whether a patch reads at least one value, and none of the values that it reads is missing in `environment`.
/// If a value is missing, the patch may succeed for a real composite, because other patches may copy the value from the
/// composite into the environment. A value that cannot be read for another reason, such as a parent of the wrong type,
/// does not count as missing.
fn has_value(outcome: &PatchOutcome, environment: &Value) -> bool {
    !outcome.reads.is_empty()
        && outcome.reads.iter().all(|read| {
            let found = Path::named(&read.path).map(|path| path.get(environment).map(|_| ()));
            read.value.is_some() || found.is_ok_and(|found| found.is_err_and(|error| !error.is_not_found()))
        })
}
