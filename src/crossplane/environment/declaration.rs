//! The environment that a Composition declares: the data that its patches can read. Crossplane up to 1.17 computes it
//! from `spec.environment`. Alternatively, Composition functions compute it from their inputs in `spec.pipeline`.

use serde_json::{Map, Value};

use super::{EnvironmentSource, MathType, Patch, PatternType, Policy, Profile, StringType, Transform};
use crate::admission::FieldPath;

/// The declaration of an environment in a Composition: the steps that compute the environment, and the software that
/// runs them.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// The software that computes the environment. This is either Crossplane itself, in versions up to 1.17, or
    /// Composition functions.
    pub profile: Profile,
    /// The steps of the computation, in order. For [`Profile::Native117`], the first step selects EnvironmentConfigs. A
    /// second step applies the patches in the Composition's `spec`, unless the Composition has mode `Pipeline`. For
    /// Composition functions, the steps are those in `spec.pipeline`.
    pub steps: Vec<Step>,
}

/// A step in the computation of an environment, and the field of the Composition that declares it.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The name of the pipeline step; empty for Crossplane up to 1.17.
    pub name: String,
    /// The path of the field in the Composition that declares this step. Examples are `spec.environment` for selecting
    /// EnvironmentConfigs, and `spec.pipeline[0].input` for the input of a Composition function.
    pub field: FieldPath,
    /// The action of the step: select EnvironmentConfigs, patch, or run another function.
    pub action: Action,
}

/// The action of a step that computes an environment, such as selecting EnvironmentConfigs.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Selects and merges EnvironmentConfigs.
    Select(Selection),
    /// Patches the composite, the environment and the composed resources.
    Patch(Patches),
    /// Runs a Composition function whose behavior Portcullis does not know. It may change the environment and the
    /// composite in any way.
    Other,
}

/// The selection of EnvironmentConfigs that a Composition declares. Crossplane up to 1.17 reads it from
/// `spec.environment`. function-environment-configs reads it from `spec` of its `Input`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selection {
    /// The `defaultData` of the Composition. The data of EnvironmentConfigs is merged over this data.
    pub default_data: Option<Map<String, Value>>,
    /// The entries of `environmentConfigs`. Each entry selects EnvironmentConfigs by name or by labels. Without
    /// entries, function-environment-configs does not change the environment.
    pub sources: Option<Vec<EnvironmentSource>>,
    /// The policy for resolving references to EnvironmentConfigs.
    pub policy: Policy,
}

/// The patches that a Composition declares. Crossplane up to 1.17 reads them from `spec`. function-patch-and-transform
/// reads them from its input `Resources`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Patches {
    /// The patches between the composite and the environment: `environment.patches`.
    pub environment: Vec<Patch>,
    /// Patch sets that patches of composed resources include by name.
    pub patch_sets: Vec<PatchSet>,
    /// The composed resources, with their patches.
    pub templates: Vec<Template>,
}

/// A named list of patches.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PatchSet {
    /// The name of the patch set.
    pub name: String,
    /// The patches of the patch set.
    pub patches: Vec<Patch>,
}

/// A composed resource that a Composition declares, with its base and its patches.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Template {
    /// The name of the composed resource; optional for Crossplane up to 1.17.
    pub name: Option<String>,
    /// The resource before it is patched. The value is `null` if another step of the pipeline creates the resource.
    pub base: Value,
    /// The patches, in the order in which they are applied.
    pub patches: Vec<Patch>,
}

impl Declaration {
    /// Returns whether Crossplane stores the references to EnvironmentConfigs in the composite. In mode Pipeline,
    /// Crossplane up to 1.17 selects EnvironmentConfigs at each reconcile and does not store references.
    pub fn stores_references(&self) -> bool {
        self.profile == Profile::Native117 && self.steps.iter().any(|step| matches!(step.action, Action::Patch(_)))
    }

    /// Sets missing type fields to their defaults: the types of patches, of match patterns, and of `string` and `math`
    /// transforms. The API server sets the same defaults in Compositions, but Compositions from files may lack them.
    /// Does nothing for Composition functions, because the API server sets no defaults in their inputs.
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
