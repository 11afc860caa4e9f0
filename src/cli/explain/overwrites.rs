//! `portcullis explain overwrites`: which entry of which overwrites does what, and why the others do not.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::{OK, Unusable, inputs, pretty, print};
use crate::catalog::{Catalog, Confirmed, View};
use crate::gate::Registry;
use crate::landscaper::component_reference::{Attribute, ComponentReference};
use crate::landscaper::installation::context_name;
use crate::landscaper::kinds::INSTALLATIONS;
use crate::landscaper::overwrites::effect::{self, Effect, Setting};
use crate::landscaper::overwrites::message;
use crate::landscaper::overwrites::substitution::{Entry, Outcome};

/// How it is told.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Output {
    /// For people
    Text,
    /// For programs
    Json,
}

/// What overwrites make of the component references of Installations, and why.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// Only this Installation
    installation: Option<String>,
    /// Only in this namespace; for files, also the namespace of objects that name none
    #[arg(long, short)]
    namespace: Option<String>,
    /// Files or folders with the objects; without, they are read from the cluster
    #[arg(long, value_name = "PATH", conflicts_with = "kubeconfig")]
    manifests: Vec<PathBuf>,
    /// The cluster to ask; without, the one that kubectl would ask
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// How it is told
    #[arg(long, short, value_enum, default_value = "text")]
    output: Output,
}

pub(super) fn run(args: &Args) -> Result<u8, Unusable> {
    let catalog = args.catalog()?;
    let explained = args.explain(&catalog);
    if explained.is_empty() {
        let name = args.installation.as_deref().unwrap_or("none at all");
        return Err(Unusable::because("there is no such Installation", name));
    }
    match args.output {
        Output::Text => print(&explained.iter().map(Explained::text).collect::<Vec<_>>().join("\n")),
        Output::Json => print(&pretty(&json!(explained.iter().map(Explained::json).collect::<Vec<_>>()))),
    }
    Ok(OK)
}

impl Args {
    fn catalog(&self) -> Result<Arc<Catalog>, Unusable> {
        let registry = Registry::standard();
        if self.manifests.is_empty() {
            return inputs::runtime()?.block_on(inputs::cluster(self.kubeconfig.as_deref(), &registry));
        }
        let objects = inputs::objects(&self.manifests, self.namespace.as_deref().unwrap_or("default"))?;
        Ok(Arc::new(Catalog::of(registry.kinds(), objects)))
    }

    fn explain(&self, catalog: &Catalog) -> Vec<Explained> {
        let confirmed = Confirmed::new();
        let view = View::new(catalog, &confirmed);
        let mut installations = catalog.all(&INSTALLATIONS);
        installations.retain(|stored| {
            self.namespace.as_deref().is_none_or(|namespace| namespace == stored.namespace())
                && self.installation.as_deref().is_none_or(|name| name == stored.name())
        });
        installations.sort_by(|a, b| (a.namespace(), a.name()).cmp(&(b.namespace(), b.name())));
        let explained = installations.iter().map(|stored| Explained {
            name: format!("{}/{}", stored.namespace(), stored.name()),
            context: context_name(stored.value()).to_owned(),
            setting: effect::of(stored.value(), stored.namespace(), &view),
        });
        explained.collect()
    }
}

/// An Installation, and what decides its component reference.
struct Explained {
    name: String,
    context: String,
    setting: Setting,
}

impl Explained {
    fn text(&self) -> String {
        let Self { name, context, setting } = self;
        let head = format!("Installation {name}\n  context     {context}\n");
        match setting {
            Setting::Overwritten(effect) => head + &overwritten(effect),
            other => format!("{head}  {}\n", why_not(other)),
        }
    }

    fn json(&self) -> Value {
        let Self { name, context, setting } = self;
        match setting {
            Setting::Overwritten(effect) => overwritten_json(name, effect),
            other => json!({"installation": name, "context": context, "overwrites": null, "reason": why_not(other)}),
        }
    }
}

fn why_not(setting: &Setting) -> String {
    match setting {
        Setting::NoComponent => "nothing to overwrite: it has no component descriptor".to_owned(),
        Setting::NotKnown => "its Context or the overwrites are not known yet".to_owned(),
        Setting::NoContext(name) => format!("its Context {name:?} does not exist"),
        Setting::NoOverwrites(name) => format!("nothing is overwritten: Context {name:?} names no overwrites"),
        Setting::MissingOverwrites { context, overwrites } => {
            format!("Context {context:?} names ComponentVersionOverwrites {overwrites:?}, which do not exist")
        }
        Setting::Overwritten(_) => String::new(),
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
        text.push_str(&format!("  overwrites[{at}]  {}\n", told(entry, outcome, &substitution.original)));
    }
    text.push_str("\n  Landscaper will say:\n");
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

fn told(entry: &Entry, outcome: &Outcome, original: &ComponentReference) -> String {
    match outcome {
        Outcome::NotMatched { differs } => {
            let differs = differs.iter().map(|part| {
                format!("{part} is {}, the source wants {}", shown(original, *part), shown(&entry.source, *part))
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
        Outcome::NotReached => "not reached: everything was set before it".to_owned(),
    }
}

fn shown(reference: &ComponentReference, attribute: Attribute) -> String {
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

fn entry_json(entry: &Entry, outcome: &Outcome, original: &ComponentReference) -> Value {
    let why = told(entry, outcome, original);
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
