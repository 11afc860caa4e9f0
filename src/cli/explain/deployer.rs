//! `portcullis explain deployer`: prints the contract between Landscaper and its deployers. Rules of Portcullis, such
//! as DP004, enforce this contract.

use super::super::print;
use crate::landscaper::deployer::explain;

/// The output format.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Output {
    /// Human-readable text
    Text,
    /// Tables in Markdown
    Markdown,
    /// A graph for Mermaid
    Mermaid,
    /// An SVG image
    Svg,
}

/// Show the life cycle of a DeployItem, who may change its state, and the requirements for every write of its status.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The output format
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
