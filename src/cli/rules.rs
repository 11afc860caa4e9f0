//! `portcullis rules`: prints the rules, their levels, and their pages.

use super::{OK, Unusable, pretty, print};
use crate::gate::{Registry, pages};

/// The output format.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Output {
    /// A table for a terminal
    Text,
    /// JSON for programs
    Json,
    /// A table with links to the pages of the rules
    Markdown,
}

/// List the rules.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Show the page of one rule
    rule: Option<String>,
    /// The output format
    #[arg(long, short, value_enum, default_value = "text")]
    output: Output,
}

pub(super) fn run(args: &Args) -> Result<u8, Unusable> {
    let registry = Registry::standard();
    match &args.rule {
        Some(id) => print(&page(&registry, id)?),
        None => print(&list(&registry, args.output)),
    }
    Ok(OK)
}

fn list(registry: &Registry, output: Output) -> String {
    match output {
        Output::Text => pages::table(registry),
        Output::Json => pretty(&pages::json(registry)),
        Output::Markdown => pages::index(registry),
    }
}

fn page(registry: &Registry, id: &str) -> Result<String, Unusable> {
    let unknown = || Unusable::new(format!("unknown rule {id:?}; `portcullis rules` lists the rules"));
    registry.info(&id.to_uppercase()).map(|info| pages::page(registry, info)).ok_or_else(unknown)
}
