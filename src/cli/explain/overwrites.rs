//! `portcullis explain overwrites`: shows which entries of a ComponentVersionOverwrites object apply to each
//! Installation, and why the other entries do not apply.

use serde_json::{Value, json};

use super::installations::Explanation;
use crate::catalog::{Stored, View};
use crate::landscaper::component_reference::{Attribute, ComponentReference};
use crate::landscaper::installation::context_name;
use crate::landscaper::overwrites::effect::{self, Effect, Evaluation};
use crate::landscaper::overwrites::message;
use crate::landscaper::substitution::{Entry, Outcome};

/// An Installation, and the effect of overwrites on its component reference.
pub(super) struct Explained {
    name: String,
    context: String,
    evaluation: Evaluation,
}

impl Explained {
    pub(super) fn of(stored: &Stored, view: &View<'_>) -> Self {
        Self {
            name: format!("{}/{}", stored.namespace(), stored.name()),
            context: context_name(stored.value()).to_owned(),
            evaluation: effect::of(stored.value(), stored.namespace(), view),
        }
    }
}

impl Explanation for Explained {
    fn text(&self) -> String {
        let Self { name, context, evaluation } = self;
        let head = format!("Installation {name}\n  context     {context}\n");
        match evaluation {
            Evaluation::Overwritten(effect) => head + &overwritten(effect),
            other => format!("{head}  {}\n", why_not(other)),
        }
    }

    fn json(&self) -> Value {
        let Self { name, context, evaluation } = self;
        match evaluation {
            Evaluation::Overwritten(effect) => overwritten_json(name, effect),
            other => json!({"installation": name, "context": context, "overwrites": null, "reason": why_not(other)}),
        }
    }
}

pub(super) fn why_not(evaluation: &Evaluation) -> String {
    match evaluation {
        Evaluation::NoComponent => "nothing to overwrite: it has no component descriptor".to_owned(),
        Evaluation::Unknown => "its Context or the overwrites are not known yet".to_owned(),
        Evaluation::NoContext(name) => format!("its Context {name:?} does not exist"),
        Evaluation::NoOverwrites(name) => format!("nothing is overwritten: Context {name:?} names no overwrites"),
        Evaluation::MissingOverwrites { context, overwrites } => {
            format!("Context {context:?} names ComponentVersionOverwrites {overwrites:?}, which do not exist")
        }
        Evaluation::Overwritten(_) => String::new(),
    }
}

fn overwritten(effect: &Effect) -> String {
    let Effect { overwrites, substitution, .. } = effect;
    let mut text = format!("  overwrites  {}\n", overwrites.name);
    text.push_str(&format!("  reference   {}\n", reference(&substitution.original)));
    if substitution.changed().next().is_some() {
        text.push_str(&format!("  becomes     {}\n", reference(&substitution.result)));
    }
    text.push('\n');
    for (at, (entry, outcome)) in overwrites.entries.iter().zip(&substitution.trace).enumerate() {
        text.push_str(&format!("  overwrites[{at}]  {}\n", outcome_text(entry, outcome, &substitution.original)));
    }
    text.push_str("\n  Landscaper's condition message:\n");
    for line in message::condition(substitution).message.lines() {
        text.push_str(&format!("    {line}\n"));
    }
    text
}

fn reference(reference: &ComponentReference) -> String {
    let context = reference.repository_context.as_ref();
    let from =
        context.map_or_else(|| "no repository context".to_owned(), |context| format!("from {}", context.brief()));
    format!("{} {} {from}", reference.component_name, reference.version)
}

pub(super) fn outcome_text(entry: &Entry, outcome: &Outcome, original: &ComponentReference) -> String {
    match outcome {
        Outcome::NotMatched { differs } => {
            let differs = differs.iter().map(|part| {
                format!("{part} is {}, the source requires {}", shown(original, *part), shown(&entry.source, *part))
            });
            format!("not matched: {}", differs.collect::<Vec<_>>().join("; "))
        }
        Outcome::Applied { set } if set.is_empty() => "applied: it sets nothing".to_owned(),
        Outcome::Applied { set } => {
            let set = set.iter().map(|part| format!("{part} to {}", shown(&entry.substitution, *part)));
            format!("applied: sets {}", set.collect::<Vec<_>>().join(", "))
        }
        Outcome::Rejected { taken } => {
            let taken = taken.iter().map(|(part, by)| format!("{part} was already set by overwrites[{by}]"));
            format!("rejected: {}", taken.collect::<Vec<_>>().join(", "))
        }
        Outcome::NotReached => "not evaluated: earlier entries set all attributes".to_owned(),
    }
}

pub(super) fn shown(reference: &ComponentReference, attribute: Attribute) -> String {
    match reference.brief(attribute).as_str() {
        "" => "empty".to_owned(),
        text => text.to_owned(),
    }
}

fn overwritten_json(name: &str, effect: &Effect) -> Value {
    let Effect { context, overwrites, substitution, .. } = effect;
    let entries = overwrites.entries.iter().zip(&substitution.trace);
    let condition = message::condition(substitution);
    json!({
        "installation": name,
        "context": context,
        "overwrites": overwrites.name,
        "original": substitution.original.to_json(),
        "result": substitution.result.to_json(),
        "changed": substitution.changed().collect::<Vec<_>>(),
        "entries": entries.map(|(entry, outcome)| entry_json(entry, outcome, &substitution.original)).collect::<Vec<_>>(),
        "patch": effect.patch(),
        "condition": {"type": message::CONDITION_TYPE, "status": condition.status, "reason": condition.reason,
                      "message": condition.message},
    })
}

pub(super) fn entry_json(entry: &Entry, outcome: &Outcome, original: &ComponentReference) -> Value {
    let why = outcome_text(entry, outcome, original);
    match outcome {
        Outcome::NotMatched { differs } => json!({"outcome": "notMatched", "differs": differs, "why": why}),
        Outcome::Applied { set } => json!({"outcome": "applied", "set": set, "why": why}),
        Outcome::Rejected { taken } => {
            let taken = taken.iter().map(|(part, by)| json!({"attribute": part, "by": by})).collect::<Vec<_>>();
            json!({"outcome": "rejected", "taken": taken, "why": why})
        }
        Outcome::NotReached => json!({"outcome": "notReached", "why": why}),
    }
}
