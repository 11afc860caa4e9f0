//! Explains how an environment is computed: which EnvironmentConfigs are selected and why, the origin of each key, and
//! each step of each patch.

mod json;
mod reasons;
mod svg;
mod text;

use std::sync::Arc;

use serde_json::Value;

use super::environment::{Action, Computation, Declaration, Merged, Patch, PatchType, Profile, Step, compute, label};
use crate::admission::Metadata;
use crate::admission::patch::diff;
use crate::catalog::Stored;
use crate::go::integers;

/// An explanation of how the environment of a composite is computed. It says which EnvironmentConfigs are selected and
/// why, where each key comes from, and what each patch does. It can be shown as text, JSON or an SVG drawing.
#[derive(Debug)]
pub struct Explanation {
    composite: Value,
    composition: String,
    declaration: Declaration,
    computation: Computation,
    /// All EnvironmentConfigs, sorted by name.
    configs: Vec<Arc<Stored>>,
}

impl Explanation {
    /// Computes the environment of a composite and explains it. `composition` is the name of the Composition that
    /// contains `declaration`. `configs` contains all EnvironmentConfigs.
    pub fn of(composite: &Value, composition: &str, declaration: Declaration, configs: &[Arc<Stored>]) -> Self {
        let mut configs = configs.to_vec();
        configs.sort_by(|a, b| a.name().cmp(b.name()));
        let computation = compute(&declaration, composite, configs.as_slice());
        Self { composite: composite.clone(), composition: composition.to_owned(), declaration, computation, configs }
    }

    /// Returns the computed environment, with the result of each step.
    pub fn computation(&self) -> &Computation {
        &self.computation
    }

    /// Returns the explanation as human-readable text.
    pub fn to_text(&self) -> String {
        text::text(self)
    }

    /// Returns the explanation as JSON for programs.
    pub fn to_json(&self) -> Value {
        json::json(self)
    }

    /// Returns an SVG drawing that shows how the environment is merged. The drawing has a row for each key of the
    /// environment, and a column for each source of data, such as an EnvironmentConfig.
    pub fn to_svg(&self) -> String {
        svg::svg(self)
    }

    fn name(&self) -> String {
        let metadata = Metadata::of(&self.composite);
        let (namespace, name) = (metadata.namespace(), metadata.name());
        let name = if name.is_empty() { metadata.generate_name().unwrap_or_default() } else { name };
        let kind = self.composite.get("kind").and_then(Value::as_str).unwrap_or_default();
        let slash = if namespace.is_empty() { "" } else { "/" };
        format!("{kind} {namespace}{slash}{name}")
    }

    fn semantics(&self) -> &'static str {
        match self.declaration.profile {
            Profile::Native117 => "Crossplane 1.17 itself",
            Profile::Function => "function-environment-configs and function-patch-and-transform",
        }
    }

    /// Returns the JSON Patch that changes the original composite into the composite after the computation of its
    /// environment.
    fn patch(&self) -> Value {
        diff_of(&integers(self.composite.clone()), &self.computation.composite)
    }
}

/// Returns the JSON Patch that changes `before` into `after`. The patch is an empty list if the two are equal.
fn diff_of(before: &Value, after: &Value) -> Value {
    diff(&integers(before.clone()), &integers(after.clone()))
        .and_then(|patch| serde_json::to_value(patch).ok())
        .unwrap_or_else(|| Value::Array(Vec::new()))
}

/// A key of a merged environment whose value is not a map, or is an empty map.
struct Leaf<'m> {
    path: crate::admission::FieldPath,
    value: &'m Value,
    layer: usize,
    replaced: &'m [super::environment::Replaced],
}

/// Returns all keys whose values are not maps, or are empty maps, sorted by path.
fn leaves(merged: &Merged) -> Vec<Leaf<'_>> {
    let mut found = Vec::new();
    let mut open: Vec<_> = vec![(crate::admission::FieldPath::root(), &merged.data, &merged.origins)];
    while let Some((path, data, origins)) = open.pop() {
        for (key, value) in data {
            let Some(origin) = origins.get(key) else { continue };
            let path = path.key(key);
            match value {
                Value::Object(members) if !members.is_empty() => open.push((path, members, &origin.members)),
                _ => found.push(Leaf { path, value, layer: origin.layer, replaced: &origin.replaced }),
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Returns the names of the source and the target of a patch, such as `composite` and `environment`. `is_environment`
/// says whether the patch is in `environment.patches`, and not in a composed resource. Both names are empty for a patch
/// set and for an unknown type.
fn route(patch: &Patch, is_environment: bool) -> (&'static str, &'static str) {
    let other = if is_environment { "environment" } else { "resource" };
    match patch.kind() {
        PatchType::FromCompositeFieldPath | PatchType::CombineFromComposite => ("composite", other),
        PatchType::ToCompositeFieldPath | PatchType::CombineToComposite => (other, "composite"),
        PatchType::FromEnvironmentFieldPath | PatchType::CombineFromEnvironment if is_environment => {
            ("environment", "composite")
        }
        PatchType::ToEnvironmentFieldPath | PatchType::CombineToEnvironment if is_environment => {
            ("composite", "environment")
        }
        PatchType::FromEnvironmentFieldPath | PatchType::CombineFromEnvironment => ("environment", "resource"),
        PatchType::ToEnvironmentFieldPath | PatchType::CombineToEnvironment => ("resource", "environment"),
        PatchType::PatchSet | PatchType::Other(_) => ("", ""),
    }
}

/// Returns the `environment.patches` of a step; empty if the step applies no patches.
fn environment_patches(step: &Step) -> &[Patch] {
    if let Action::Patch(patches) = &step.action { &patches.environment } else { &[] }
}
