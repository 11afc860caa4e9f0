//! The requirements that a deployer of Landscaper must meet in the conformance test. They come from Landscaper's
//! deployer contract.
//!
//! Admission rules of Portcullis also check some of these requirements. The name of such a requirement is the id of the
//! rule, such as `DP007`. The other requirements are checked only by the test, for example that the deployer processes
//! a DeployItem in time.

use crate::landscaper::deployer::requirements::REQUIREMENTS;

/// A requirement that a deployer of Landscaper must meet in the conformance test. It comes from Landscaper's deployer
/// contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TestedRequirement {
    /// The id of the rule that checks the requirement, such as `DP007`. If no rule checks it, a name such as
    /// `finishes`.
    pub(super) name: &'static str,
    /// The requirement of Landscaper's deployer contract, as a sentence such as `spec.type does not change`.
    pub(super) sentence: &'static str,
    /// Whether the conformance test fails if the deployer violates the requirement. If false, the violation is only
    /// shown in the report, with the result `warning`.
    pub(super) is_binding: bool,
}

const fn binding(name: &'static str, sentence: &'static str) -> TestedRequirement {
    TestedRequirement { name, sentence, is_binding: true }
}

pub(super) static PICKS_UP: TestedRequirement =
    binding("picks-up", "a job is picked up: lastReconcileTime is not before jobIDGenerationTime");
pub(super) static FINISHES: TestedRequirement =
    binding("finishes", "a job is finished in time, with the expected result");
pub(super) static EXPLAINS: TestedRequirement = binding("explains", "after a failure, lastError has a message");
pub(super) static WAITS: TestedRequirement =
    binding("waits", "the deployer does not change a DeployItem without an open job");
pub(super) static JOB_IS_LANDSCAPERS: TestedRequirement =
    binding("job-is-landscapers", "jobID is written by Landscaper only");
pub(super) static UNINSTALLS: TestedRequirement =
    binding("uninstalls", "the finalizer of a deleted DeployItem is removed in time");
pub(super) static KEEPS: TestedRequirement =
    binding("keeps", "with delete-without-uninstall: \"true\" the finalizer is removed in time");
pub(super) static TYPE_STAYS: TestedRequirement = binding("DP007", "spec.type does not change");
pub(super) static FINALIZER_STAYS: TestedRequirement =
    binding("DP009", "the finalizer is removed only from a DeployItem that is being deleted");
pub(super) static OTHERS_ITEMS: TestedRequirement =
    binding("DP010", "the deployer does not change DeployItems of another type or Target");

/// Returns all requirements of Landscaper's deployer contract that are tested, in the order of the report. Requirements
/// with a rule come first, sorted by the id of the rule.
pub(super) fn all() -> Vec<TestedRequirement> {
    let about_writes = REQUIREMENTS.into_iter().map(|requirement| TestedRequirement {
        name: requirement.rule,
        sentence: requirement.sentence,
        // The webhook only warns about violations of these requirements.
        is_binding: !["DP006", "DP014"].contains(&requirement.rule),
    });
    let mut all: Vec<_> = about_writes.chain([TYPE_STAYS, FINALIZER_STAYS, OTHERS_ITEMS]).collect();
    all.sort_by_key(|tried| tried.name);
    all.extend([PICKS_UP, FINISHES, EXPLAINS, WAITS, JOB_IS_LANDSCAPERS, UNINSTALLS, KEEPS]);
    all
}
