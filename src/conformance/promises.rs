//! The promises that the kit tries: those that the webhook enforces, and those that only somebody sees who waits.

use crate::landscaper::deployer::promises::PROMISES;

/// A promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tried {
    /// Its name: the id of its rule where it has one.
    pub(super) name: &'static str,
    /// What is promised.
    pub(super) sentence: &'static str,
    /// Whether breaking it is a mistake, or only something to know.
    pub(super) is_binding: bool,
}

const fn binding(name: &'static str, sentence: &'static str) -> Tried {
    Tried { name, sentence, is_binding: true }
}

pub(super) static PICKS_UP: Tried =
    binding("picks-up", "a job is picked up: lastReconcileTime is not before jobIDGenerationTime");
pub(super) static FINISHES: Tried = binding("finishes", "a job is finished in time, with the result that it must have");
pub(super) static EXPLAINS: Tried = binding("explains", "a failure says in lastError what went wrong");
pub(super) static WAITS: Tried = binding("waits", "a DeployItem without an open job is left alone");
pub(super) static JOB_IS_LANDSCAPERS: Tried = binding("job-is-landscapers", "jobID is written by Landscaper only");
pub(super) static UNINSTALLS: Tried = binding("uninstalls", "what is deleted loses its finalizer, in time");
pub(super) static KEEPS: Tried =
    binding("keeps", "with delete-without-uninstall: \"true\" the finalizer is taken off, in time");
pub(super) static TYPE_STAYS: Tried = binding("DP007", "spec.type stays as it is");
pub(super) static FINALIZER_STAYS: Tried = binding("DP009", "the finalizer is taken off only what is being deleted");
pub(super) static OTHERS_ITEMS: Tried = binding("DP010", "DeployItems of another type or Target are left alone");

/// All, in the order of the report: those with rules by their ids, then the others.
pub(super) fn all() -> Vec<Tried> {
    let about_writes = PROMISES.into_iter().map(|promise| Tried {
        name: promise.rule,
        sentence: promise.sentence,
        // A phase of its own and a job that is replaced are what the webhook warns about.
        is_binding: !["DP006", "DP014"].contains(&promise.rule),
    });
    let mut all: Vec<_> = about_writes.chain([TYPE_STAYS, FINALIZER_STAYS, OTHERS_ITEMS]).collect();
    all.sort_by_key(|tried| tried.name);
    all.extend([PICKS_UP, FINISHES, EXPLAINS, WAITS, JOB_IS_LANDSCAPERS, UNINSTALLS, KEEPS]);
    all
}
