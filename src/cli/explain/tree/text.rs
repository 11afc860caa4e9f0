//! Formats a component tree as text.

use super::super::overwrites::{outcome_text, shown, why_not};
use super::Tree;
use crate::landscaper::component_reference::{Attribute, ComponentReference};
use crate::landscaper::components::closure::{Step, Target};
use crate::landscaper::components::split::splits;
use crate::landscaper::overwrites::effect::Effect;
use crate::landscaper::substitution::Outcome;

pub(super) fn text(tree: &Tree) -> String {
    let Some(effect) = tree.effect() else {
        return format!("Installation {}\n  {}\n", tree.name, why_not(&tree.evaluation));
    };
    let mut text = format!(
        "Installation {}\n  context     {}\n  overwrites  {}\n\n",
        tree.name, effect.context, effect.overwrites.name
    );
    Writer { effect, children: tree.closure.by_component() }.write(&mut text, tree.closure.root(), "", "");
    let splits = splits(&tree.closure);
    for split in &splits {
        text.push_str(&format!("\n! {}\n", split.sentence(&tree.closure)));
    }
    if let Some(failure) = tree.closure.failure() {
        text.push_str(&format!("\n✗ Landscaper will fail: {failure}\n"));
    }
    text
}

struct Writer<'t> {
    effect: &'t Effect,
    children: Vec<Vec<&'t Step>>,
}

impl Writer<'_> {
    fn write(&self, text: &mut String, step: Option<&Step>, own: &str, below: &str) {
        let Some(step) = step else { return };
        text.push_str(&format!("{own}{}\n", line(step)));
        let children: &[&Step] = match step.to {
            Target::New(component) => self.children.get(component).map(Vec::as_slice).unwrap_or_default(),
            _ => &[],
        };
        let trunk = if children.is_empty() { "   " } else { "│  " };
        for reason in self.reasons(step) {
            text.push_str(&format!("{below}{trunk}  {reason}\n"));
        }
        for (at, child) in children.iter().enumerate() {
            let (branch, trunk) = if at + 1 == children.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            self.write(text, Some(child), &format!("{below}{branch}"), &format!("{below}{trunk}"));
        }
    }

    /// Returns a line for each overwrite of the component that `step` refers to. The line says whether the overwrite
    /// applies, or why it does not. Omits overwrites of other components.
    fn reasons(&self, step: &Step) -> Vec<String> {
        let entries = self.effect.overwrites.entries.iter().zip(&step.substitution.trace).enumerate();
        let is_about = |outcome: &Outcome| match outcome {
            Outcome::NotMatched { differs } => !differs.contains(&Attribute::ComponentName),
            _ => true,
        };
        let reason = |(at, (entry, outcome))| {
            format!("overwrites[{at}] {}", outcome_text(entry, outcome, &step.substitution.original))
        };
        entries.filter(|(_, (_, outcome))| is_about(outcome)).map(reason).collect()
    }
}

/// Returns one line of text about a component reference: its name, component and version. If overwrites change the
/// reference, an arrow and the changed component and version follow.
pub(super) fn line(step: &Step) -> String {
    let substitution = &step.substitution;
    let mut line = if step.name.is_empty() { String::new() } else { format!("{}: ", step.name) };
    line.push_str(&named(&substitution.original));
    if substitution.changed().next().is_some() {
        line.push_str(&format!(" → {}", named(&substitution.result)));
        if substitution.changes(Attribute::RepositoryContext) {
            line.push_str(&format!(" from {}", shown(&substitution.result, Attribute::RepositoryContext)));
        }
    }
    match &step.to {
        Target::New(_) => {}
        Target::Again(_) => line.push_str("  (as above)"),
        Target::Gap(gap) => line.push_str(&format!("  ✗ {gap}")),
    }
    line
}

fn named(reference: &ComponentReference) -> String {
    format!("{} {}", reference.component_name, reference.version)
}
