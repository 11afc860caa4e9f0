//! `portcullis rules`: prints the rules, their levels, and their pages.

use std::path::PathBuf;

use super::{OK, Unusable, pretty, print};
use crate::gate::{Registry, pages};

/// The output format.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Output {
    /// A table for a terminal
    Text,
    /// JSON for programs
    Json,
    /// The index of the rule pages
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
    /// Write the page of every rule, and their index, into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "rule")]
    write: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<u8, Unusable> {
    let registry = Registry::standard();
    match (&args.rule, &args.write) {
        (Some(id), _) => print(&page(&registry, id)?),
        (None, Some(folder)) => write(&registry, folder)?,
        (None, None) => print(&list(&registry, args.output)),
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
    let row = registry.row(&id.to_uppercase());
    row.map(pages::page)
        .ok_or_else(|| Unusable::new(format!("unknown rule {id:?}; `portcullis rules` lists the rules")))
}

fn write(registry: &Registry, folder: &PathBuf) -> Result<(), Unusable> {
    let failed = |error| Unusable::because(folder.display(), error);
    std::fs::create_dir_all(folder).map_err(failed)?;
    for (file, text) in pages::all(registry) {
        std::fs::write(folder.join(file), text).map_err(failed)?;
    }
    Ok(())
}
