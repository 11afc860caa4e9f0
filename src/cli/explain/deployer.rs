//! `portcullis explain deployer`: the contract between Landscaper and its deployers, from the table that is enforced.

use super::super::print;
use crate::landscaper::deployer::explain;

/// How it is told.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Output {
    /// For people
    Text,
    /// Tables for a page
    Markdown,
    /// A graph for Mermaid
    Mermaid,
    /// A drawing
    Svg,
}

/// The life of a DeployItem, who may move it from one state to another, and what every write of its status must keep.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// How it is told
    #[arg(long, short, value_enum, default_value = "text")]
    output: Output,
}

pub(super) fn run(args: &Args) {
    print(&match args.output {
        Output::Text => explain::text(),
        Output::Markdown => explain::markdown(),
        Output::Mermaid => explain::mermaid(),
        Output::Svg => explain::svg(),
    });
}
