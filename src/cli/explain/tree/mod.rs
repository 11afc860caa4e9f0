//! `portcullis explain overwrites --tree`: shows every component reference in component trees, how overwrites change
//! it, and why.

mod diff;
mod graph;
mod source;
mod text;

use std::path::PathBuf;

use serde_json::{Value, json};

use super::super::registries::Registries;
use super::super::{OK, Unusable, pretty, print};
use super::installations::{self, Output};
use super::overwrites::{Explained, entry_json, why_not};
use crate::catalog::{Catalog, LiveReads, Stored, View};
use crate::landscaper::components::closure::{Closure, Component, Step, Target};
use crate::landscaper::components::patch;
use crate::landscaper::components::split::splits;
use crate::landscaper::overwrites::effect::{self, Effect, Evaluation};
use source::Source;

/// Show which changes the overwrites make in the component references of Installations, and why.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    which: installations::Args,
    /// Show the whole component tree of each Installation. The component descriptors are read from OCI registries or
    /// from the files of --components
    #[arg(long)]
    tree: bool,
    /// Files or folders with all component descriptors; default: they are read from OCI registries
    #[arg(long, value_name = "PATH", requires = "tree")]
    components: Vec<PathBuf>,
    /// A Docker config.json with credentials for registries
    #[arg(long, value_name = "FILE", requires = "tree")]
    registry_config: Option<PathBuf>,
    #[command(flatten)]
    registries: Registries,
    /// Show what the overwrites and Contexts in this file or folder would change in every Installation
    #[arg(long, value_name = "OTHER")]
    diff: Option<PathBuf>,
}

/// An Installation and its component tree.
struct Tree {
    name: String,
    evaluation: Evaluation,
    closure: Closure,
}

pub(super) fn run(args: &Args) -> Result<u8, Unusable> {
    if !args.tree && args.diff.is_none() {
        return args.which.print_all(|stored, view| Some(Explained::of(stored, view)));
    }
    let catalog = args.which.catalog()?;
    let source = Source::of(args)?;
    if let Some(other) = &args.diff {
        return diff::run(args, &catalog, &source, other);
    }
    let mut trees = Vec::new();
    for stored in args.which.installations(&catalog) {
        trees.push(Tree::of(&stored, &catalog, &source)?);
    }
    if trees.is_empty() {
        return Err(args.which.none());
    }
    let joined = |of: fn(&Tree) -> String, between: &str| trees.iter().map(of).collect::<Vec<_>>().join(between);
    print(&match args.which.output {
        Output::Text => joined(text::text, "\n"),
        Output::Json => pretty(&json!(trees.iter().map(Tree::json).collect::<Vec<_>>())),
        Output::Dot => graph::dot(&trees),
        Output::Mermaid => graph::mermaid(&trees),
        Output::Svg => graph::svg(&trees),
    });
    Ok(OK)
}

impl Tree {
    fn of(stored: &Stored, catalog: &Catalog, source: &Source) -> Result<Self, Unusable> {
        let nothing = LiveReads::new();
        let evaluation = effect::of(stored.value(), stored.namespace(), &View::new(catalog, &nothing));
        let closure = match &evaluation {
            Evaluation::Overwritten(effect) => {
                source.closure(stored.value(), &effect.substitution.original, &effect.overwrites.entries)?
            }
            _ => Closure::default(),
        };
        Ok(Self { name: format!("{}/{}", stored.namespace(), stored.name()), evaluation, closure })
    }

    fn effect(&self) -> Option<&Effect> {
        match &self.evaluation {
            Evaluation::Overwritten(effect) => Some(effect),
            _ => None,
        }
    }

    /// Returns one line for each change that a ComponentVersionOverwrites object makes to a component reference. Covers
    /// all references in the component tree of the Installation. A line shows the changed attribute, its old value and
    /// its new value.
    fn lines(&self) -> Vec<String> {
        let Some(effect) = self.effect() else { return Vec::new() };
        let of = |step: &Step| {
            let way = if step.from.is_some() { format!("{}: ", self.closure.path_to(step)) } else { String::new() };
            let lines = effect.lines_of(&step.substitution);
            lines.into_iter().map(|line| format!("{way}{line}")).collect::<Vec<_>>()
        };
        self.closure.steps.iter().flat_map(of).collect()
    }

    fn json(&self) -> Value {
        let Some(effect) = self.effect() else {
            return json!({"installation": self.name, "overwrites": null, "reason": why_not(&self.evaluation)});
        };
        let grouped = self.closure.by_component();
        let descriptor = |(component, steps): (&Component, &Vec<&Step>)| {
            let descriptor = &component.descriptor;
            json!({
                "componentName": descriptor.name, "version": descriptor.version, "digest": descriptor.digest,
                "patch": patch::of(descriptor, steps.iter().copied()),
            })
        };
        json!({
            "installation": self.name,
            "context": effect.context,
            "overwrites": effect.overwrites.name,
            "references": self.closure.steps.iter().map(|step| self.step_json(step, effect)).collect::<Vec<_>>(),
            "descriptors": self.closure.components.iter().zip(&grouped).map(descriptor).collect::<Vec<_>>(),
            "splits": splits(&self.closure).iter().map(|split| split.sentence(&self.closure)).collect::<Vec<_>>(),
            "complete": self.closure.is_complete(),
            "landscaperFails": self.closure.failure(),
        })
    }

    fn step_json(&self, step: &Step, effect: &Effect) -> Value {
        let substitution = &step.substitution;
        let entries = effect.overwrites.entries.iter().zip(&substitution.trace);
        let (leads, gap) = match &step.to {
            Target::New(_) => ("followed", None),
            Target::Again(_) => ("seenBefore", None),
            Target::Gap(gap) => ("gap", Some(gap.to_string())),
        };
        json!({
            "way": self.closure.path_to(step),
            "depth": step.depth,
            "name": step.name,
            "original": substitution.original.to_json(),
            "result": substitution.result.to_json(),
            "changed": substitution.changed().collect::<Vec<_>>(),
            "entries": entries.map(|(entry, outcome)| entry_json(entry, outcome, &substitution.original)).collect::<Vec<_>>(),
            "leads": leads,
            "gap": gap,
        })
    }
}
