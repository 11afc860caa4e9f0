//! `portcullis explain`: the working behind a decision.

mod dry_run;
mod environment;
mod fragment;
mod installations;
mod kustomize;
mod overwrites;

use super::Unusable;
use crate::landscaper::dry_run::mark;

/// What is explained.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Topic {
    /// What overwrites make of the component references of Installations, and why
    Overwrites(installations::Args),
    /// Which objects are in dry run, and the value of every export or what it lacks
    DryRun(installations::Args),
    /// What a Composition makes of a composite and its environment, step by step
    Environment(environment::Args),
    /// What a kustomize root is made of, in the order of evaluation
    Kustomize(kustomize::Args),
}

pub(super) fn run(topic: &Topic) -> Result<u8, Unusable> {
    match topic {
        Topic::Overwrites(args) => args.tell(|stored, view| Some(overwrites::Explained::of(stored, view))),
        Topic::DryRun(args) => args.tell(|stored, view| {
            let wanted = args.is_about_one() || mark::owner(stored.value()).is_none();
            wanted.then(|| dry_run::DryRun::of(stored, view))
        }),
        Topic::Environment(args) => environment::run(args),
        Topic::Kustomize(args) => kustomize::run(args),
    }
}
