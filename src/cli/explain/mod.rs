//! `portcullis explain`: the working behind a decision.

mod deployer;
mod dry_run;
mod fragment;
mod installations;
mod kustomize;
mod overwrites;
mod tree;

use super::{OK, Unusable};
use crate::landscaper::dry_run::mark;

/// What is explained.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Topic {
    /// What overwrites make of the component references of Installations, and why
    Overwrites(Box<tree::Args>),
    /// Which objects are in dry run, and the value of every export or what it lacks
    DryRun(installations::Args),
    /// What every deployer must keep: the life of a DeployItem, and who may write what
    Deployer(deployer::Args),
    /// What a kustomize root is made of, in the order of evaluation
    Kustomize(kustomize::Args),
}

pub(super) fn run(topic: &Topic) -> Result<u8, Unusable> {
    match topic {
        Topic::Overwrites(args) => tree::run(args),
        Topic::DryRun(args) => args.tell(|stored, view| {
            let wanted = args.is_about_one() || mark::owner(stored.value()).is_none();
            wanted.then(|| dry_run::DryRun::of(stored, view))
        }),
        Topic::Deployer(args) => {
            deployer::run(args);
            Ok(OK)
        }
        Topic::Kustomize(args) => kustomize::run(args),
    }
}
