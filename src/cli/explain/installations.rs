//! Shared arguments and output of the commands that explain Installations.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::{OK, Unusable, inputs, pretty, print};
use crate::catalog::{Catalog, LiveReads, Stored, View};
use crate::gate::Registry;
use crate::landscaper::kinds::INSTALLATIONS;

/// The output format.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(super) enum Output {
    /// Human-readable text
    Text,
    /// JSON for programs
    Json,
    /// A Graphviz graph (only for component trees)
    Dot,
    /// A Mermaid graph (only for component trees)
    Mermaid,
    /// An SVG drawing (only for component trees)
    Svg,
}

/// The arguments of commands that explain Installations.
#[derive(Debug, clap::Args)]
#[group(id = "which")]
pub(in crate::cli) struct Args {
    /// Show only this Installation
    installation: Option<String>,
    /// Show only Installations in this namespace. With --manifests, objects that set no namespace get this namespace
    #[arg(long, short)]
    namespace: Option<String>,
    /// Files or folders with the objects; default: the cluster
    #[arg(long, value_name = "PATH", conflicts_with = "kubeconfig")]
    manifests: Vec<PathBuf>,
    /// The kubeconfig of the cluster; default: kubectl's current context
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The output format
    #[arg(long, short, value_enum, default_value = "text")]
    pub(super) output: Output,
}

/// An explanation of one Installation.
pub(super) trait Explanation {
    /// Formats the explanation as text.
    fn text(&self) -> String;
    /// Formats the explanation as JSON.
    fn json(&self) -> Value;
}

impl Args {
    /// Returns whether one Installation is selected by name.
    pub(super) fn is_about_one(&self) -> bool {
        self.installation.is_some()
    }

    /// Prints the explanation of every selected Installation. `of` creates the explanation of one Installation, or
    /// returns `None` to omit it. Fails if there is no explanation to print, or if the output format is neither text
    /// nor JSON.
    pub(super) fn print_all<T: Explanation>(
        &self,
        of: impl Fn(&Stored, &View<'_>) -> Option<T>,
    ) -> Result<u8, Unusable> {
        let catalog = self.catalog()?;
        let live_reads = LiveReads::new();
        let view = View::new(&catalog, &live_reads);
        let explained: Vec<T> = self.installations(&catalog).iter().filter_map(|stored| of(stored, &view)).collect();
        if explained.is_empty() {
            return Err(self.none());
        }
        match self.output {
            Output::Text => print(&explained.iter().map(Explanation::text).collect::<Vec<_>>().join("\n")),
            Output::Json => print(&pretty(&json!(explained.iter().map(Explanation::json).collect::<Vec<_>>()))),
            Output::Dot | Output::Mermaid | Output::Svg => {
                return Err(Unusable::new("only `explain overwrites --tree` supports this output format"));
            }
        }
        Ok(OK)
    }

    /// Returns the error that says that no Installation is selected.
    pub(super) fn none(&self) -> Unusable {
        let name = self.installation.as_ref().map(|name| format!(" {name:?}")).unwrap_or_default();
        Unusable::new(format!("no Installation{name} found"))
    }

    /// Returns the namespace for objects that specify none. This is the value of `--namespace`, or `default` if the
    /// flag is not set.
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
