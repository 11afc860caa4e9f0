//! `portcullis review`: answers an AdmissionReview.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use futures::executor::block_on;

use super::{OK, Unusable, inputs, print};
use crate::admission::review::{self, Review};
use crate::admission::{Answer, Phase, Verdict};
use crate::catalog::manifests::DEFAULT_NAMESPACE;
use crate::gate::{Gate, Registry};

/// The webhook to run: mutating, validating, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Webhook {
    /// The mutating webhook
    Mutate,
    /// The validating webhook
    Validate,
    /// Both webhooks in sequence, as the API server calls them
    Both,
}

/// Answer an AdmissionReview from standard input.
///
/// The answer is written to standard output, whether it admits or denies. Exit code 2: the input is not a valid review.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files or folders with the objects in the cluster; default: none
    #[arg(long, value_name = "PATH")]
    manifests: Vec<PathBuf>,
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The webhook to run: mutating, validating, or both
    #[arg(long, value_enum, default_value = "both")]
    webhook: Webhook,
}

pub(super) fn run(args: &Args) -> Result<u8, Unusable> {
    let registry = Registry::standard();
    let policy = inputs::policy(args.config.as_deref(), &registry)?;
    let catalog = inputs::catalog(&registry, &args.manifests, DEFAULT_NAMESPACE)?;
    let gate = Gate::new(registry, policy, Arc::new(catalog));
    let mut body = Vec::new();
    std::io::stdin().read_to_end(&mut body).map_err(|error| Unusable::because("standard input", error))?;
    let answer = match review::read(&body) {
        Ok(review) => block_on(decide(&gate, review, args.webhook)),
        Err(unreadable) => unreadable.answer().ok_or_else(|| Unusable::new(unreadable.to_string()))?,
    };
    let mut text = answer.to_json();
    text.push(b'\n');
    print(&String::from_utf8_lossy(&text));
    Ok(OK)
}

async fn decide(gate: &Gate, review: Review<'_>, webhook: Webhook) -> Answer {
    let Review { version, request } = review;
    match webhook {
        Webhook::Mutate => gate.decide(Phase::Mutate, &request).await.answer(version, Phase::Mutate, &request),
        Webhook::Validate => gate.decide(Phase::Validate, &request).await.answer(version, Phase::Validate, &request),
        Webhook::Both => {
            let mutated = gate.decide(Phase::Mutate, &request).await;
            if !mutated.is_allowed() {
                return mutated.answer(version, Phase::Mutate, &request);
            }
            let request = match &mutated.patch {
                Some(patch) => request.patched(patch),
                None => request,
            };
            let validated = gate.decide(Phase::Validate, &request).await;
            let verdict = Verdict { notices: mutated.notices, patch: mutated.patch, ..validated };
            verdict.answer(version, Phase::Mutate, &request)
        }
    }
}
