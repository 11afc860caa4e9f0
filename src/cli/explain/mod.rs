//! `portcullis explain`: the working behind a decision.

mod kustomize;
mod overwrites;

use super::Unusable;

/// What is explained.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Topic {
    /// What overwrites make of the component references of Installations, and why
    Overwrites(overwrites::Args),
    /// What a kustomize root is made of, in the order of evaluation
    Kustomize(kustomize::Args),
}

pub(super) fn run(topic: &Topic) -> Result<u8, Unusable> {
    match topic {
        Topic::Overwrites(args) => overwrites::run(args),
        Topic::Kustomize(args) => kustomize::run(args),
    }
}
