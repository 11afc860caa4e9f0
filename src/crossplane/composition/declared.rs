//! The schema that a Composition declares for its environment.

use std::sync::Arc;

use serde_json::Value;

use crate::crossplane::environment::{Action, Declaration, Patch, PatchType, Patches};
use crate::crossplane::field_path::Path;
use crate::crossplane::schema::{Found, Schema};

/// The fields of an environment that a Composition declares or sets. The Composition declares fields in a JSON Schema.
/// Its patches and default data can set additional fields, which are not in the schema.
pub(super) struct Declared {
    schema: Arc<Schema>,
    /// Paths in the environment to which patches write.
    written: Vec<Path>,
    /// The `defaultData` of each step that selects EnvironmentConfigs.
    defaults: Vec<Value>,
}

impl Declared {
    /// Collects the fields of an environment. `schema` is the JSON Schema of the environment. `declaration` contains
    /// the patches and the default data of the Composition, which can set additional fields.
    pub(super) fn new(schema: Arc<Schema>, declaration: Option<&Declaration>) -> Self {
        let (mut written, mut defaults) = (Vec::new(), Vec::new());
        for step in declaration.into_iter().flat_map(|declaration| &declaration.steps) {
            match &step.action {
                Action::Select(selection) => defaults.extend(selection.default_data.clone().map(Value::Object)),
                Action::Patch(patches) => written.extend(written_by(patches)),
                Action::Other => {}
            }
        }
        Self { schema, written, defaults }
    }

    /// Returns the types of values that are allowed at `path` in the environment, as the schema declares them. If the
    /// schema does not have the path, but the Composition sets it with a patch or in its default data, any type is
    /// allowed.
    pub(super) fn at(&self, path: &Path) -> Found {
        let found = self.schema.at(path);
        let is_own = || {
            let near = |one: &Path| one.segments().iter().zip(path.segments()).all(|(one, other)| one == other);
            self.written.iter().any(near) || self.defaults.iter().any(|data| path.get(data).is_ok())
        };
        if matches!(found, Found::Nothing { .. }) && is_own() { Found::Anything } else { found }
    }
}

/// Returns the paths in the environment to which patches write.
fn written_by(patches: &Patches) -> Vec<Path> {
    use PatchType::{CombineFromComposite, CombineToEnvironment, FromCompositeFieldPath, ToEnvironmentFieldPath};
    let of_environment = patches
        .environment
        .iter()
        .filter(|patch| matches!(patch.kind(), FromCompositeFieldPath | CombineFromComposite | ToEnvironmentFieldPath));
    let sets = patches.patch_sets.iter().flat_map(|set| &set.patches);
    let resources = patches.templates.iter().flat_map(|template| &template.patches).chain(sets);
    let of_resources = resources.filter(|patch| matches!(patch.kind(), ToEnvironmentFieldPath | CombineToEnvironment));
    let target = |patch: &Patch| {
        let path = patch.to_field_path.as_deref().or(patch.from_field_path.as_deref())?;
        Path::parse(path).ok()
    };
    of_environment.chain(of_resources).filter_map(target).collect()
}
