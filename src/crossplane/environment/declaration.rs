//! What a Composition says about its environment, whichever way it says it.

use serde_json::{Map, Value};

use super::{EnvironmentSource, MathType, Patch, PatternType, Policy, StringType, Transform};
use crate::admission::FieldPath;

/// Whose semantics apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Crossplane 1.17.6 itself, the last version that computes environments.
    Native117,
    /// The functions: function-environment-configs and function-patch-and-transform.
    Function,
}

/// What a Composition says about its environment.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// Whose semantics apply.
    pub profile: Profile,
    /// What is done, in this order: for [`Profile::Native117`] a selection and then the patches of `spec`, else the steps
    /// of the pipeline.
    pub steps: Vec<Step>,
}

/// One step, with where it stands in the Composition.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The name of the pipeline step; empty for what `spec` itself says.
    pub name: String,
    /// The field that says it, such as `spec.environment` or `spec.pipeline[0].input`.
    pub field: FieldPath,
    /// What is done.
    pub action: Action,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// EnvironmentConfigs are selected and merged.
    Select(Selection),
    /// The composite, the environment and the templates are patched.
    Patch(Patches),
    /// Another function runs, which may do anything to the environment and the composite.
    Other,
}

/// Which EnvironmentConfigs make the environment: `spec.environment`, or `spec` of a function's `Input`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selection {
    /// The lowest layer of the environment.
    pub default_data: Option<Map<String, Value>>,
    /// `environmentConfigs`; `None` where the field is missing, upon which the function does nothing at all.
    pub sources: Option<Vec<EnvironmentSource>>,
    /// When references are resolved, and whether they must be.
    pub policy: Policy,
}

/// Patches: `spec` of a native Composition, or a function's `Resources`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Patches {
    /// Between the composite and the environment: `environment.patches`.
    pub environment: Vec<Patch>,
    /// Patches to be used by name.
    pub patch_sets: Vec<PatchSet>,
    /// The composed resources.
    pub templates: Vec<Template>,
}

/// Patches under a name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PatchSet {
    /// Its name.
    pub name: String,
    /// Its patches.
    pub patches: Vec<Patch>,
}

/// A composed resource.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Template {
    /// Its name; native Compositions may leave it out.
    pub name: Option<String>,
    /// What it is before it is patched; `null` where another step of the pipeline makes it.
    pub base: Value,
    /// Its patches, in the order in which they are applied.
    pub patches: Vec<Patch>,
}

impl Declaration {
    /// Whether Crossplane stores the references to EnvironmentConfigs in the composite. In mode Pipeline native Crossplane
    /// selects them and never stores them, so that it selects anew with each reconcile.
    pub fn stores_references(&self) -> bool {
        self.profile == Profile::Native117 && self.steps.iter().any(|step| matches!(step.action, Action::Patch(_)))
    }

    /// The same with what the schema of native Compositions says by default. A Composition from the API server has it
    /// already, one from a file has not; without it, native Crossplane passes over patches that say no type. The inputs of
    /// functions have no schema, so that nothing is added to them.
    #[must_use]
    pub fn with_schema_defaults(mut self) -> Self {
        if self.profile == Profile::Native117 {
            for step in &mut self.steps {
                if let Action::Patch(patches) = &mut step.action {
                    let sets = patches.patch_sets.iter_mut().flat_map(|set| &mut set.patches);
                    let resources = patches.templates.iter_mut().flat_map(|template| &mut template.patches);
                    patches.environment.iter_mut().chain(sets).chain(resources).for_each(default_patch);
                }
            }
        }
        self
    }
}

fn default_patch(patch: &mut Patch) {
    patch.patch_type = patch.kind();
    patch.transforms.iter_mut().for_each(default_transform);
}

fn default_transform(transform: &mut Transform) {
    if let Some(string) = transform.string.as_mut().filter(|string| string.string_type.is_unset()) {
        string.string_type = StringType::Format;
    }
    if let Some(math) = transform.math.as_mut().filter(|math| math.math_type.is_unset()) {
        math.math_type = MathType::Multiply;
    }
    let patterns = transform.matching.iter_mut().flat_map(|matching| &mut matching.patterns);
    for pattern in patterns.filter(|pattern| pattern.pattern_type.is_unset()) {
        pattern.pattern_type = PatternType::Literal;
    }
}
