//! Formats the explanation of a Crossplane environment as text for people. The explanation says how the environment of
//! a composite is computed.

use serde_json::Value;

use super::reasons::{others, wanted};
use super::{Explanation, diff_of, environment_patches, leaves, route};
use crate::admission::json;
use crate::crossplane::environment::{
    Action, ActionOutcome, Ending, Merged, Patch, PatchOutcome, SourceOutcome, Step, StepOutcome, TemplateOutcome,
};
use crate::go::integers;

pub(super) fn text(explanation: &Explanation) -> String {
    let Explanation { composition, computation, declaration, .. } = explanation;
    let mut text =
        format!("{}\n  Composition  {composition}\n  computed by  {}\n", explanation.name(), explanation.semantics());
    for outcome in &computation.steps {
        text.push_str(&step(explanation, &declaration.steps[outcome.step], outcome));
    }
    if computation.is_uncertain {
        text.push_str("\n  Other functions run too; their changes are not known.\n");
    }
    if let Some(references) = &computation.references {
        text.push_str(&format!("\n  spec.environmentConfigRefs: {}\n", references.join(", ")));
    }
    text.push_str(&patch("the composite", &explanation.patch()));
    if let Some(failure) = &computation.failure {
        text.push_str(&format!("\n  fails: {failure}\n"));
    }
    text
}

fn step(explanation: &Explanation, step: &Step, outcome: &StepOutcome) -> String {
    let name = if step.name.is_empty() { String::new() } else { format!("step {}, ", step.name) };
    let mut text = format!("\n  {name}{}\n", step.field);
    match &outcome.action {
        ActionOutcome::Selected { sources, kept, merged } => {
            text.push_str(&selected(explanation, step, sources));
            if let Some(kept) = kept {
                let kept = if kept.is_empty() { "none".to_owned() } else { kept.join(", ") };
                text.push_str(&format!("    kept: the composite's own environmentConfigRefs: {kept}\n"));
            }
            text.push_str(&merged.as_ref().map(layers).unwrap_or_default());
        }
        ActionOutcome::Patched { environment, templates } => {
            let declared = environment_patches(step);
            for (at, (declared, outcome)) in declared.iter().zip(environment).enumerate() {
                text.push_str(&patched(&format!("environment.patches[{at}]"), declared, outcome, true));
            }
            for at in environment.len()..declared.len() {
                text.push_str(&format!("    environment.patches[{at}] is not reached\n"));
            }
            templates.iter().enumerate().for_each(|(at, outcome)| text.push_str(&template(at, outcome)));
        }
        ActionOutcome::Other => text.push_str("    another function\n"),
    }
    text
}

fn selected(explanation: &Explanation, step: &Step, sources: &[SourceOutcome]) -> String {
    let Action::Select(selection) = &step.action else { return String::new() };
    let mut text = String::new();
    for (at, (source, sourced)) in selection.sources.iter().flatten().zip(sources).enumerate() {
        text.push_str(&format!("    environmentConfigs[{at}] {}\n", wanted(source, sourced)));
        for stored in &sourced.selected {
            text.push_str(&format!("      + {}\n", stored.name()));
        }
        for (name, reason) in others(sourced, &explanation.configs) {
            text.push_str(&format!("      - {name}: {reason}\n"));
        }
        if let Some(why) = &sourced.skipped {
            text.push_str(&format!("      nothing is selected: {why}\n"));
        }
        if let Some(error) = &sourced.error {
            text.push_str(&format!("      fails: {error}\n"));
        }
    }
    text
}

fn layers(merged: &Merged) -> String {
    let mut text = String::from("    merged; later layers win:\n");
    for (at, layer) in merged.layers.iter().enumerate() {
        let path = layer.to_field_path.as_ref().map(|path| format!(", at {path}")).unwrap_or_default();
        text.push_str(&format!("      {}. {}{path}\n", at + 1, layer.name));
    }
    for leaf in leaves(merged) {
        let from = merged.layers.get(leaf.layer).map(|layer| layer.name.to_string()).unwrap_or_default();
        text.push_str(&format!("      {} = {}    from {from}\n", leaf.path, brief(leaf.value)));
        for old in leaf.replaced.iter().rev() {
            let from = merged.layers.get(old.layer).map(|layer| layer.name.to_string()).unwrap_or_default();
            text.push_str(&format!("          replaces {} of {from}\n", brief(&old.value)));
        }
    }
    for overwrite in merged.overwrites().iter().filter(|overwrite| merged.is_random(overwrite)) {
        let path = &overwrite.path;
        text.push_str(&format!(
            "      {path} is set by sources with different toFieldPath; the function uses one of them at random\n"
        ));
    }
    for path in &merged.imprecise {
        text.push_str(&format!("      {path} loses digits: it has more digits than a float64 can represent\n"));
    }
    text
}

fn patched(name: &str, patch: &Patch, outcome: &PatchOutcome, is_environment: bool) -> String {
    let (from, to) = route(patch, is_environment);
    let kind = patch.kind();
    let mut text = format!("    {name} {}: {from} to {to}\n", kind.as_str());
    for read in &outcome.reads {
        let value = read.value.as_ref().map_or("not found".to_owned(), |value| format!("= {}", brief(value)));
        text.push_str(&format!("      {} {value}\n", read.path));
    }
    if let Some(combined) = &outcome.combined {
        text.push_str(&format!("      combined = {}\n", brief(&combined.shown())));
    }
    for (at, (step, transform)) in outcome.steps.iter().zip(&patch.transforms).enumerate() {
        let kind = transform.transform_type.as_str();
        text.push_str(&format!("      transforms[{at}] {kind} = {}\n", brief(&step.shown())));
    }
    for mistake in &outcome.mistakes {
        text.push_str(&format!("      the format does not fit the values (numbers may be float64): {mistake:?}\n"));
    }
    text.push_str(&match &outcome.ending {
        Ending::Written => format!("      written to {}\n", outcome.written.join(", ")),
        Ending::Skipped(why) => format!("      skipped: {why}\n"),
        Ending::Ignored(why) => format!("      ignored: {why}\n"),
        Ending::Deferred(why) => format!("      later: {why}\n"),
        Ending::Failed(why) => format!("      fails: {why}\n"),
    });
    text
}

fn template(at: usize, outcome: &TemplateOutcome) -> String {
    let name = if outcome.name.is_empty() { format!("resources[{at}]") } else { format!("resource {}", outcome.name) };
    let mut text = format!("    {name}\n");
    for (at, (declared, outcome)) in outcome.patches.iter().enumerate() {
        let out = patched(&format!("patches[{at}]"), declared, outcome, false);
        text.extend(out.lines().flat_map(|line| ["  ", line, "\n"]));
    }
    match &outcome.rendered {
        Ok(rendered) => text.push_str(&patch(&name, &diff_of(&outcome.base, rendered))),
        Err(error) => text.push_str(&format!("      is not rendered: {error}\n")),
    }
    text
}

fn patch(what: &str, patch: &Value) -> String {
    let operations = patch.as_array().map(Vec::as_slice).unwrap_or_default();
    if operations.is_empty() {
        return format!("      JSON Patch of {what}: none\n");
    }
    let lines: String = operations.iter().map(|operation| format!("        {operation}\n")).collect();
    format!("      JSON Patch of {what}:\n{lines}")
}

/// Returns a value as short JSON text. Floating-point numbers without a fraction are shown as integers.
fn brief(value: &Value) -> String {
    json::brief(&integers(value.clone()))
}
