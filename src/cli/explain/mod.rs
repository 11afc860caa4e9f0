//! `portcullis explain`: shows how a decision was computed.

mod deployer;
mod dry_run;
mod environment;
mod fragment;
mod installations;
mod kustomize;
mod overwrites;
mod repository;
mod tree;

use super::lazy::Lazy;
use super::{OK, Unusable};
use crate::landscaper::owner::owner;

/// The output format of explanations that can be shown as a graph or as an SVG drawing.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(super) enum Output {
    /// Human-readable text
    Text,
    /// JSON for programs
    Json,
    /// A Graphviz graph
    Dot,
    /// A Mermaid graph
    Mermaid,
    /// An SVG drawing
    Svg,
}

/// The topic to explain.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Topic {
    /// How ComponentVersionOverwrites change the component references of Installations, and why
    Overwrites(Lazy<Box<tree::Args>>),
    /// Which objects of Landscaper are in dry run, and the value of every export
    DryRun(Lazy<installations::Args>),
    /// How a Composition computes the environment of a composite, step by step
    Environment(Lazy<environment::Args>),
    /// The contract of deployers: the life cycle of a DeployItem, and who may write what
    Deployer(Lazy<deployer::Args>),
    /// The resources, Components, patches and other parts of a kustomization, in the order of the build
    Kustomize(Lazy<kustomize::Args>),
    /// Which objects build the kustomizations of a repository, in which order, and which files are in no build
    Repository(Lazy<repository::Args>),
}

pub(super) fn run(topic: &Topic) -> Result<u8, Unusable> {
    match topic {
        Topic::Overwrites(Lazy(args)) => tree::run(args),
        Topic::DryRun(Lazy(args)) => args.print_all(|stored, view| {
            let wanted = args.is_about_one() || owner(stored.value()).is_none();
            wanted.then(|| dry_run::DryRun::of(stored, view))
        }),
        Topic::Environment(Lazy(args)) => environment::run(args),
        Topic::Deployer(Lazy(args)) => {
            deployer::run(args);
            Ok(OK)
        }
        Topic::Kustomize(Lazy(args)) => kustomize::run(args),
        Topic::Repository(Lazy(args)) => repository::run(args),
    }
}
