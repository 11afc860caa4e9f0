//! `portcullis explain`: the working behind a decision.

mod deployer;
mod dry_run;
mod environment;
mod fragment;
mod installations;
mod kustomize;
mod overwrites;
mod tree;

use super::deferred::Deferred;
use super::{OK, Unusable};
use crate::landscaper::dry_run::annotations;

/// What is explained.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Topic {
    /// What overwrites make of the component references of Installations, and why
    Overwrites(Deferred<Box<tree::Args>>),
    /// Which objects are in dry run, and the value of every export or what it lacks
    DryRun(Deferred<installations::Args>),
    /// What a Composition makes of a composite and its environment, step by step
    Environment(Deferred<environment::Args>),
    /// What every deployer must keep: the life of a DeployItem, and who may write what
    Deployer(Deferred<deployer::Args>),
    /// What a kustomize root is made of, in the order of evaluation
    Kustomize(Deferred<kustomize::Args>),
}

pub(super) fn run(topic: &Topic) -> Result<u8, Unusable> {
    match topic {
        Topic::Overwrites(Deferred(args)) => tree::run(args),
        Topic::DryRun(Deferred(args)) => args.tell(|stored, view| {
            let wanted = args.is_about_one() || annotations::owner(stored.value()).is_none();
            wanted.then(|| dry_run::DryRun::of(stored, view))
        }),
        Topic::Environment(Deferred(args)) => environment::run(args),
        Topic::Deployer(Deferred(args)) => {
            deployer::run(args);
            Ok(OK)
        }
        Topic::Kustomize(Deferred(args)) => kustomize::run(args),
    }
}
