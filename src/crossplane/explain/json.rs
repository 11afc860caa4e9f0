//! Formats an explanation as JSON, for programs.

use serde_json::{Value, json};

use super::reasons::{others, wanted};
use super::{Explanation, diff_of, environment_patches, leaves, route};
use crate::crossplane::environment::{
    Action, ActionOutcome, Ending, Merged, Patch, PatchOutcome, SourceOutcome, Step, StepOutcome, TemplateOutcome,
};
use crate::go::integers;

pub(super) fn json(explanation: &Explanation) -> Value {
    let Explanation { composition, computation, declaration, .. } = explanation;
    let steps: Vec<Value> =
        computation.steps.iter().map(|outcome| step(explanation, &declaration.steps[outcome.step], outcome)).collect();
    json!({
        "composite": explanation.name(),
        "composition": composition,
        "computedBy": explanation.semantics(),
        "steps": steps,
        "environment": integers(computation.environment.clone()),
        "environmentConfigRefs": computation.references,
        "patch": explanation.patch(),
        "failure": computation.failure,
        "otherFunctions": computation.is_uncertain,
    })
}

fn step(explanation: &Explanation, step: &Step, outcome: &StepOutcome) -> Value {
    let mut out = json!({"step": step.name, "field": step.field.to_string(), "failure": outcome.failure});
    match &outcome.action {
        ActionOutcome::Selected { sources, kept, merged } => {
            out["sources"] = json!(selected(explanation, step, sources));
            out["keptReferences"] = json!(kept);
            out["merged"] = merged.as_ref().map_or(Value::Null, layers);
        }
        ActionOutcome::Patched { environment, templates } => {
            let patches = environment_patches(step).iter().zip(environment);
            out["patches"] = patches.map(|(patch, outcome)| patched(patch, outcome, true)).collect();
            out["resources"] = templates.iter().map(template).collect();
        }
        ActionOutcome::Other => {}
    }
    out["environment"] = integers(outcome.environment.clone());
    out
}

fn selected(explanation: &Explanation, step: &Step, sources: &[SourceOutcome]) -> Vec<Value> {
    let Action::Select(selection) = &step.action else { return Vec::new() };
    let out = |(source, sourced): (_, &SourceOutcome)| {
        let others = others(sourced, &explanation.configs);
        let others: Vec<Value> =
            others.into_iter().map(|(name, reason)| json!({"name": name, "reason": reason})).collect();
        json!({
            "wanted": wanted(source, sourced),
            "labels": sourced.labels,
            "selected": sourced.selected.iter().map(|stored| stored.name()).collect::<Vec<_>>(),
            "notSelected": others,
            "skipped": sourced.skipped,
            "error": sourced.error,
        })
    };
    selection.sources.iter().flatten().zip(sources).map(out).collect()
}

fn layers(merged: &Merged) -> Value {
    let name = |at: usize| merged.layers.get(at).map(|layer| layer.name.to_string());
    let layers: Vec<Value> = merged
        .layers
        .iter()
        .map(|layer| json!({"name": layer.name.to_string(), "toFieldPath": layer.to_field_path}))
        .collect();
    let keys: Vec<Value> = leaves(merged)
        .iter()
        .map(|leaf| {
            let replaced: Vec<Value> =
                leaf.replaced.iter().map(|old| json!({"from": name(old.layer), "value": integers(old.value.clone())})).collect();
            json!({"path": leaf.path.to_string(), "value": integers(leaf.value.clone()), "from": name(leaf.layer), "replaced": replaced})
        })
        .collect();
    let imprecise: Vec<String> = merged.imprecise.iter().map(ToString::to_string).collect();
    let random = merged.overwrites();
    let random =
        random.iter().filter(|overwrite| merged.is_random(overwrite)).map(|overwrite| overwrite.path.to_string());
    json!({"layers": layers, "keys": keys, "imprecise": imprecise, "random": random.collect::<Vec<_>>()})
}

fn patched(patch: &Patch, outcome: &PatchOutcome, is_environment: bool) -> Value {
    let (from, to) = route(patch, is_environment);
    let reads: Vec<Value> = outcome
        .reads
        .iter()
        .map(|read| json!({"path": read.path, "value": read.value, "found": read.value.is_some()}))
        .collect();
    let transforms = patch.transforms.iter().zip(&outcome.steps);
    let transforms: Vec<Value> = transforms
        .map(|(transform, step)| json!({"type": transform.transform_type.as_str(), "output": step.shown()}))
        .collect();
    let (ending, why) = match &outcome.ending {
        Ending::Written => ("written", None),
        Ending::Skipped(why) => ("skipped", Some(why)),
        Ending::Ignored(why) => ("ignored", Some(why)),
        Ending::Deferred(why) => ("later", Some(why)),
        Ending::Failed(why) => ("failed", Some(why)),
    };
    json!({
        "type": patch.kind().as_str(),
        "from": from,
        "to": to,
        "reads": reads,
        "combined": outcome.combined.as_ref().map(|combined| combined.shown()),
        "transforms": transforms,
        "output": outcome.output(),
        "written": outcome.written,
        "mistakes": outcome.mistakes,
        "ending": ending,
        "why": why,
    })
}

fn template(outcome: &TemplateOutcome) -> Value {
    let patches: Vec<Value> = outcome.patches.iter().map(|(patch, outcome)| patched(patch, outcome, false)).collect();
    let (patch, error) = match &outcome.rendered {
        Ok(rendered) => (diff_of(&outcome.base, rendered), None),
        Err(error) => (Value::Null, Some(error)),
    };
    json!({"name": outcome.name, "patches": patches, "patch": patch, "error": error})
}
