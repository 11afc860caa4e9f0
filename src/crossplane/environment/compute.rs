//! Computes the environment of a composite: selects EnvironmentConfigs, merges their data, and applies patches.

use serde_json::{Map, Value};

use super::apply::PatchOutcome;
use super::document::with_kind;
use super::patching::{Patching, TemplateOutcome};
use super::select::{Configs, SourceOutcome, not_fetched, select};
use super::{Action, Declaration, Layer, LayerName, Merged, Patches, Profile, Selection};
use crate::crossplane::field_path::Path;
use crate::go::{floats, quote};

/// The result of computing a Composition's environment for a composite.
#[derive(Debug, Clone)]
pub struct Computation {
    /// The results of the steps that ran.
    pub steps: Vec<StepOutcome>,
    /// The environment after all steps, with `apiVersion` and `kind`. `null` if there is no environment.
    pub environment: Value,
    /// The composite after the computation of its environment. Patches may have changed the composite.
    pub composite: Value,
    /// The names of EnvironmentConfigs that Crossplane up to 1.17 writes into the composite's field
    /// `spec.environmentConfigRefs`. `None` if Crossplane does not change this field.
    pub references: Option<Vec<String>>,
    /// Crossplane's error message if the computation fails.
    pub failure: Option<String>,
    /// Whether the pipeline runs an unknown function. The environment does not include the changes of unknown
    /// functions.
    pub is_uncertain: bool,
}

/// The result of one step of the computation.
#[derive(Debug, Clone)]
pub struct StepOutcome {
    /// The index of the step in `Declaration::steps`.
    pub step: usize,
    /// The result of the step's action.
    pub action: ActionOutcome,
    /// The environment after the step.
    pub environment: Value,
    /// Crossplane's error message if the step fails.
    pub failure: Option<String>,
}

/// The result of the action of one step: selected EnvironmentConfigs, or applied patches.
#[derive(Debug, Clone)]
pub enum ActionOutcome {
    /// EnvironmentConfigs were selected and merged.
    Selected {
        /// The results of the entries of `environmentConfigs`. Each entry selects EnvironmentConfigs by name or by
        /// labels. Empty if `kept` is set, because Crossplane then does not evaluate the entries.
        sources: Vec<SourceOutcome>,
        /// The names in the composite's `spec.environmentConfigRefs`, if the EnvironmentConfigs were taken from there.
        /// Only Crossplane up to 1.17 does this. `None` if the entries of `environmentConfigs` selected the
        /// EnvironmentConfigs.
        kept: Option<Vec<String>>,
        /// The data of all selected EnvironmentConfigs, merged into one environment. `None` if the selection failed, or
        /// if the step does not change the environment.
        merged: Option<Merged>,
    },
    /// Patches were applied.
    Patched {
        /// The results of the patches between the composite and the environment, up to the first failure.
        environment: Vec<PatchOutcome>,
        /// The results for the composed resources, in the order of the Composition.
        templates: Vec<TemplateOutcome>,
    },
    /// A Composition function that Portcullis does not know. Its changes to the environment and the composite are
    /// unknown.
    Other,
}

/// Computes the environment of `composite`: selects EnvironmentConfigs from `configs`, merges their data, and applies
/// patches. `declaration` contains the steps of this computation, as a Composition specifies them.
pub fn compute(declaration: &Declaration, composite: &Value, configs: &(impl Configs + ?Sized)) -> Computation {
    let mut computing = Computing {
        profile: declaration.profile,
        stores_references: declaration.stores_references(),
        original: composite,
        patching: Patching::new(declaration.profile, Value::Null, composite),
        references: None,
    };
    let mut steps = Vec::with_capacity(declaration.steps.len());
    let mut failure = None;
    let mut is_uncertain = false;
    for (at, step) in declaration.steps.iter().enumerate() {
        let (action, failed) = match &step.action {
            Action::Select(selection) => computing.select(selection, configs),
            Action::Patch(patches) => computing.patch(patches),
            Action::Other => {
                is_uncertain = true;
                (ActionOutcome::Other, None)
            }
        };
        failure.clone_from(&failed);
        let environment = computing.patching.environment().clone();
        steps.push(StepOutcome { step: at, action, environment, failure: failed });
        if failure.is_some() {
            break;
        }
    }
    Computation {
        steps,
        environment: computing.patching.environment().clone(),
        composite: computing.patching.composite(),
        references: computing.references,
        failure,
        is_uncertain,
    }
}

struct Computing<'c> {
    profile: Profile,
    stores_references: bool,
    original: &'c Value,
    patching: Patching,
    references: Option<Vec<String>>,
}

type Done = (ActionOutcome, Option<String>);

impl Computing<'_> {
    fn select(&mut self, selection: &Selection, configs: &(impl Configs + ?Sized)) -> Done {
        let kept = self.kept(selection);
        let sources = match kept {
            Some(_) => Vec::new(),
            None => select(self.profile, selection, self.patching.observed(), configs),
        };
        let result = match &kept {
            Some(names) => self.fetched(names, selection, configs),
            None => self.layers(selection, &sources),
        };
        let (merged, failure) = match result {
            Ok(layers) => (layers.map(Merged::of), None),
            Err(error) => (None, Some(error)),
        };
        if let Some(merged) = &merged {
            self.patching.set_environment(with_kind(self.profile, merged.data.clone()));
        }
        let is_resolved = failure.is_none() && selection.sources.as_ref().is_some_and(|sources| !sources.is_empty());
        if self.stores_references && kept.is_none() && is_resolved {
            self.references = Some(sources.iter().flat_map(SourceOutcome::references).collect());
        }
        (ActionOutcome::Selected { sources, kept, merged }, failure)
    }

    /// Returns the names in the composite's `spec.environmentConfigRefs`, if Crossplane uses these EnvironmentConfigs
    /// instead of selecting new ones. Returns `None` if EnvironmentConfigs must be selected. This is always the case
    /// for Composition functions.
    fn kept(&self, selection: &Selection) -> Option<Vec<String>> {
        if self.profile == Profile::Function {
            return None;
        }
        let names = references(self.original);
        let has_sources = selection.sources.as_ref().is_some_and(|sources| !sources.is_empty());
        let is_kept = !has_sources || (!names.is_empty() && !selection.policy.always_resolves());
        is_kept.then_some(names)
    }

    /// Returns the data to merge into the environment: the default data of the Composition, followed by the data of
    /// each EnvironmentConfig in `names`. Returns an error if an EnvironmentConfig does not exist, unless the policy of
    /// `selection` allows missing EnvironmentConfigs.
    ///
    /// The result is never `None`. The return type is an `Option` only because it must be the same as that of `layers`.
    fn fetched(
        &self,
        names: &[String],
        selection: &Selection,
        configs: &(impl Configs + ?Sized),
    ) -> Result<Option<Vec<Layer>>, String> {
        let mut layers: Vec<Layer> = defaults(selection).into_iter().collect();
        for name in names {
            match configs.find(name) {
                Some(stored) => layers.extend(native_layer(name, stored.value())),
                None if selection.policy.is_resolution_optional() => {}
                None => return Err(not_fetched(name)),
            }
        }
        Ok(Some(layers))
    }

    /// Returns the data that a step merges into the environment, as a list of layers. The layers are the default data,
    /// the environment of earlier steps (only for Composition functions), and the data of each selected
    /// EnvironmentConfig. Returns an error if an entry of `sources` has failed, or if an EnvironmentConfig has no
    /// usable data.
    ///
    /// Returns `None` if function-environment-configs runs this step and looks up no EnvironmentConfigs. The step then
    /// leaves the environment unchanged.
    fn layers(&self, selection: &Selection, sources: &[SourceOutcome]) -> Result<Option<Vec<Layer>>, String> {
        if let Some(error) = sources.iter().find_map(|source| source.error.clone()) {
            return Err(error);
        }
        if self.profile == Profile::Function && !sources.iter().any(|source| source.asked) {
            return Ok(None);
        }
        let mut layers: Vec<Layer> = defaults(selection).into_iter().collect();
        if let (Profile::Function, Value::Object(earlier)) = (self.profile, self.patching.environment()) {
            layers.push(Layer { name: LayerName::Earlier, to_field_path: None, data: earlier.clone() });
        }
        for source in sources {
            for stored in &source.selected {
                match self.profile {
                    Profile::Native117 => layers.extend(native_layer(stored.name(), stored.value())),
                    Profile::Function => layers.push(function_layer(stored.name(), stored.value(), source)?),
                }
            }
        }
        Ok(Some(layers))
    }

    fn patch(&mut self, patches: &Patches) -> Done {
        let environment = match self.patching.environment() {
            Value::Object(members) => members.clone(),
            _ => Map::new(),
        };
        if self.profile == Profile::Function {
            // The environment passes between functions as a message, in which every number is a float64.
            let read_again = floats(self.patching.environment().clone());
            self.patching.set_environment(read_again);
        }
        let has_kind = self.patching.environment().get("kind").is_some();
        if !has_kind {
            self.patching.set_environment(with_kind(self.profile, environment));
        }
        let (environment, failure) = self.patching.environment_patches(&patches.environment);
        if failure.is_some() {
            return (ActionOutcome::Patched { environment, templates: Vec::new() }, failure);
        }
        let (templates, failure) = match self.patching.templates(patches) {
            Ok(templates) => (templates, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        (ActionOutcome::Patched { environment, templates }, failure)
    }
}

/// Returns the names in a composite's `spec.environmentConfigRefs`. Crossplane ignores all other fields of the
/// references.
pub fn references(composite: &Value) -> Vec<String> {
    let references = composite.pointer("/spec/environmentConfigRefs").and_then(Value::as_array);
    let name = |reference: &Value| reference.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    references.into_iter().flatten().map(name).collect()
}

fn defaults(selection: &Selection) -> Option<Layer> {
    let data = selection.default_data.clone()?;
    Some(Layer { name: LayerName::DefaultData, to_field_path: None, data })
}

/// Returns the data of an EnvironmentConfig as a layer of the environment. `None` if the EnvironmentConfig has no data.
/// Crossplane up to 1.17 then skips the EnvironmentConfig.
fn native_layer(name: &str, config: &Value) -> Option<Layer> {
    let data = config.get("data")?.as_object()?.clone();
    Some(Layer { name: LayerName::Config(name.to_owned()), to_field_path: None, data })
}

fn function_layer(name: &str, config: &Value, source: &SourceOutcome) -> Result<Layer, String> {
    let layer =
        |data| Layer { name: LayerName::Config(name.to_owned()), to_field_path: source.to_field_path.clone(), data };
    let data = config.get("data");
    let Some(path) = &source.to_field_path else {
        let wrong = |why: &str| {
            let name = quote(name);
            format!("cannot merge environment data: cannot get data from environment config {name}: {why}")
        };
        return match data {
            Some(Value::Object(data)) => Ok(layer(data.clone())),
            Some(Value::Null) => Ok(layer(Map::new())),
            Some(_) => Err(wrong("data: not an object")),
            None => Err(wrong("data: no such field")),
        };
    };
    let mut object = Value::Object(Map::new());
    let set = Path::named(path).and_then(|path| path.set(&mut object, data.cloned().unwrap_or(Value::Null)));
    match (set, object) {
        (Ok(()), Value::Object(data)) => Ok(layer(data)),
        _ => Err(format!(
            "cannot merge environment data: cannot get data from environment config {name} into path {}",
            quote(path)
        )),
    }
}
