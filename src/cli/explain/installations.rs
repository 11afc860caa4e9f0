//! What the commands that explain Installations have in common: which ones, from where, and how they are told.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::{OK, Unusable, inputs, pretty, print};
use crate::catalog::{Catalog, Confirmed, Stored, View};
use crate::gate::Registry;
use crate::landscaper::kinds::INSTALLATIONS;

/// How it is told.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(super) enum Output {
    /// For people
    Text,
    /// For programs
    Json,
    /// A graph for Graphviz, of trees
    Dot,
    /// A graph for Mermaid, of trees
    Mermaid,
    /// A drawing, of trees
    Svg,
}

/// Which Installations are explained, from where, and how.
#[derive(Debug, clap::Args)]
#[group(id = "which")]
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
    pub(super) output: Output,
}

/// What is told of one Installation.
pub(super) trait Told {
    /// For people.
    fn text(&self) -> String;
    /// For programs.
    fn json(&self) -> Value;
}

impl Args {
    /// Whether one Installation is asked for by name.
    pub(super) fn is_about_one(&self) -> bool {
        self.installation.is_some()
    }

    /// Tells what `of` makes of every Installation that is asked for.
    pub(super) fn tell<T: Told>(&self, of: impl Fn(&Stored, &View<'_>) -> Option<T>) -> Result<u8, Unusable> {
        let catalog = self.catalog()?;
        let confirmed = Confirmed::new();
        let view = View::new(&catalog, &confirmed);
        let told: Vec<T> = self.installations(&catalog).iter().filter_map(|stored| of(stored, &view)).collect();
        if told.is_empty() {
            return Err(self.none());
        }
        match self.output {
            Output::Text => print(&told.iter().map(Told::text).collect::<Vec<_>>().join("\n")),
            Output::Json => print(&pretty(&json!(told.iter().map(Told::json).collect::<Vec<_>>()))),
            Output::Dot | Output::Mermaid | Output::Svg => {
                return Err(Unusable::new("only the trees of overwrites are drawn: explain overwrites --tree"));
            }
        }
        Ok(OK)
    }

    /// That there is nothing to tell of.
    pub(super) fn none(&self) -> Unusable {
        let name = self.installation.as_deref().unwrap_or("none at all");
        Unusable::because("there is no such Installation", name)
    }

    /// The namespace of objects that name none.
    pub(super) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }

    pub(super) fn catalog(&self) -> Result<Arc<Catalog>, Unusable> {
        let registry = Registry::standard();
        if self.manifests.is_empty() {
            return inputs::runtime()?.block_on(inputs::cluster(self.kubeconfig.as_deref(), &registry));
        }
        let objects = inputs::objects(&self.manifests, self.namespace.as_deref().unwrap_or("default"))?;
        let catalog = registry.catalog().with_whole_objects();
        catalog.replace_all(objects);
        Ok(Arc::new(catalog))
    }

    pub(super) fn installations(&self, catalog: &Catalog) -> Vec<Arc<Stored>> {
        let mut installations = catalog.all(&INSTALLATIONS);
        installations.retain(|stored| {
            self.namespace.as_deref().is_none_or(|namespace| namespace == stored.namespace())
                && self.installation.as_deref().is_none_or(|name| name == stored.name())
        });
        installations.sort_by(|a, b| (a.namespace(), a.name()).cmp(&(b.namespace(), b.name())));
        installations
    }
}
