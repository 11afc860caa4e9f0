//! The working behind an environment: what is selected and why, where every key comes from, and every patch step by step.

mod json;
mod reasons;
mod svg;
mod text;

use std::sync::Arc;

use serde_json::Value;

use super::environment::{Action, Computation, Declaration, Merged, Patch, PatchType, Profile, Step, compute, label};
use super::go::integers;
use crate::admission::patch::diff;
use crate::catalog::Stored;

/// The working behind the environment of a composite.
#[derive(Debug)]
pub struct Explanation {
    composite: Value,
    composition: String,
    declaration: Declaration,
    computation: Computation,
    /// All EnvironmentConfigs that there are, sorted by name.
    configs: Vec<Arc<Stored>>,
}

impl Explanation {
    /// Works out what a Composition makes of a composite, with all EnvironmentConfigs that there are.
    pub fn of(composite: &Value, composition: &str, declaration: Declaration, configs: &[Arc<Stored>]) -> Self {
        let mut configs = configs.to_vec();
        configs.sort_by(|a, b| a.name().cmp(b.name()));
        let computation = compute(&declaration, composite, configs.as_slice());
        Self { composite: composite.clone(), composition: composition.to_owned(), declaration, computation, configs }
    }

    /// What was worked out.
    pub fn computation(&self) -> &Computation {
        &self.computation
    }

    /// For people.
    pub fn to_text(&self) -> String {
        text::text(self)
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        json::json(self)
    }

    /// A drawing of the layers that make the environment.
    pub fn to_svg(&self) -> String {
        svg::svg(self)
    }

    fn name(&self) -> String {
        let text = |pointer| self.composite.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let name = if name.is_empty() { text("/metadata/generateName") } else { name };
        let slash = if namespace.is_empty() { "" } else { "/" };
        format!("{} {namespace}{slash}{name}", text("/kind"))
    }

    fn semantics(&self) -> &'static str {
        match self.declaration.profile {
            Profile::Native117 => "Crossplane 1.17 itself",
            Profile::Function => "function-environment-configs and function-patch-and-transform",
        }
    }

    /// The JSON Patch that makes the composite what it will be.
    fn patch(&self) -> Value {
        diff_of(&integers(self.composite.clone()), &self.computation.composite)
    }
}

/// The JSON Patch from one object to another; an empty list where they are the same.
fn diff_of(before: &Value, after: &Value) -> Value {
    diff(&integers(before.clone()), &integers(after.clone()))
        .and_then(|patch| serde_json::to_value(patch).ok())
        .unwrap_or_else(|| Value::Array(Vec::new()))
}

/// A key of a merged environment that is no map.
struct Leaf<'m> {
    path: crate::admission::FieldPath,
    value: &'m Value,
    layer: usize,
    replaced: &'m [super::environment::Replaced],
}

/// All keys that are no maps, in their order.
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

/// Where a patch goes from and to, in words.
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

/// The patches of `environment.patches` of a step.
fn environment_patches(step: &Step) -> &[Patch] {
    if let Action::Patch(patches) = &step.action { &patches.environment } else { &[] }
}
