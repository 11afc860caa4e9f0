//! `portcullis explain`: the working behind a decision.

mod dry_run;
mod fragment;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{OK, Unusable, inputs, pretty, print};
use crate::catalog::{Catalog, Confirmed, Stored, View};
use crate::gate::Registry;
use crate::landscaper::component_reference::{Attribute, ComponentReference};
use crate::landscaper::dry_run::mark;
use crate::landscaper::installation::context_name;
use crate::landscaper::kinds::INSTALLATIONS;
use crate::landscaper::overwrites::effect::{self, Effect, Setting};
use crate::landscaper::overwrites::message;
use crate::landscaper::overwrites::substitution::{Entry, Outcome};
use dry_run::DryRun;

/// What is explained.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Topic {
    /// What overwrites make of the component references of Installations, and why
    Overwrites(Args),
    /// Which objects are in dry run, and the value of every export or what it lacks
    DryRun(Args),
}

/// How it is told.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Output {
    /// For people
    Text,
    /// For programs
    Json,
}

/// Which Installations are explained, from where, and how.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
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

/// What is told of one Installation.
trait Told {
    fn text(&self) -> String;
    fn json(&self) -> Value;
}

pub(super) fn run(topic: &Topic) -> Result<u8, Unusable> {
    match topic {
        Topic::Overwrites(args) => args.tell(|stored, view| Some(Explained::of(stored, view))),
        Topic::DryRun(args) => args.tell(|stored, view| {
            let wanted = args.installation.is_some() || mark::owner(stored.value()).is_none();
            wanted.then(|| DryRun::of(stored, view))
        }),
    }
}

impl Args {
    fn tell<T: Told>(&self, of: impl Fn(&Stored, &View<'_>) -> Option<T>) -> Result<u8, Unusable> {
        let catalog = self.catalog()?;
        let confirmed = Confirmed::new();
        let view = View::new(&catalog, &confirmed);
        let told: Vec<T> = self.installations(&catalog).iter().filter_map(|stored| of(stored, &view)).collect();
        if told.is_empty() {
            let name = self.installation.as_deref().unwrap_or("none at all");
            return Err(Unusable::because("there is no such Installation", name));
        }
        match self.output {
            Output::Text => print(&told.iter().map(Told::text).collect::<Vec<_>>().join("\n")),
            Output::Json => print(&pretty(&json!(told.iter().map(Told::json).collect::<Vec<_>>()))),
        }
        Ok(OK)
    }

    fn catalog(&self) -> Result<Arc<Catalog>, Unusable> {
        let registry = Registry::standard();
        if self.manifests.is_empty() {
            return inputs::runtime()?.block_on(inputs::cluster(self.kubeconfig.as_deref(), &registry));
        }
        let objects = inputs::objects(&self.manifests, self.namespace.as_deref().unwrap_or("default"))?;
        Ok(Arc::new(Catalog::of(registry.kinds(), objects)))
    }

    fn installations(&self, catalog: &Catalog) -> Vec<Arc<Stored>> {
        let mut installations = catalog.all(&INSTALLATIONS);
        installations.retain(|stored| {
            self.namespace.as_deref().is_none_or(|namespace| namespace == stored.namespace())
                && self.installation.as_deref().is_none_or(|name| name == stored.name())
        });
        installations.sort_by(|a, b| (a.namespace(), a.name()).cmp(&(b.namespace(), b.name())));
        installations
    }
}

/// An Installation, and what decides its component reference.
struct Explained {
    name: String,
    context: String,
    setting: Setting,
}

impl Explained {
    fn of(stored: &Stored, view: &View<'_>) -> Self {
        Self {
            name: format!("{}/{}", stored.namespace(), stored.name()),
            context: context_name(stored.value()).to_owned(),
            setting: effect::of(stored.value(), stored.namespace(), view),
        }
    }
}

impl Told for Explained {
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
