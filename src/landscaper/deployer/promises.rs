//! The promises of the deployer contract that hold in both generations of Landscaper: what a write of a status keeps or
//! breaks.
//!
//! Each was held against every write that Landscaper and its own deployers make. What the contract's prose asks beyond
//! these, they break themselves; `docs/deployer-contract.md` lists it.

use super::phase::Phase;
use super::status::{Change, Job, Status};

/// A promise about writes of a status.
pub struct Promise {
    /// The rule that watches over it.
    pub rule: &'static str,
    /// What is promised.
    pub sentence: &'static str,
    /// Whether a write keeps it.
    pub is_kept: fn(&Change<'_>) -> bool,
}

/// DP001.
pub static FINISHED_IS_FINAL: Promise = Promise {
    rule: "DP001",
    sentence: "where jobIDFinished is jobID, the phase is Succeeded, Failed or DeleteFailed",
    is_kept: |change| change.new.job() != Job::Done || change.new.phase.is_final(),
};

/// DP002.
pub static FINISHED_IS_THE_JOB: Promise = Promise {
    rule: "DP002",
    sentence: "jobIDFinished changes to jobID and to nothing else",
    is_kept: |Change { old, new }| new.finished == old.finished || new.finished == new.job,
};

/// DP003. Where the phase contradicts the job, ending that is no change of a result.
pub static RESULT_STAYS: Promise = Promise {
    rule: "DP003",
    sentence: "once a job is finished its phase stays, until there is another job",
    is_kept: |Change { old, new }| {
        let is_same_job = old.job() == Job::Done && (old.job, old.finished) == (new.job, new.finished);
        !is_same_job || has_same_phase(old, new) || !old.phase.is_final()
    },
};

/// DP004.
pub static PICKED_UP: Promise = Promise {
    rule: "DP004",
    sentence: "work begins on an open job only, sets lastReconcileTime, and does not lose its job",
    is_kept: |change| match begins(change) {
        true => change.new.job() == Job::Open && is_stamped(change),
        false => !is_stray(&change.new) || is_stray(&change.old),
    },
};

/// DP005.
pub static UNINSTALLS_WHAT_IS_DELETED: Promise = Promise {
    rule: "DP005",
    sentence: "InitDelete, Deleting and DeleteFailed are for DeployItems that are being deleted",
    is_kept: |Change { new, .. }| !new.phase.is_deletion() || new.being_deleted,
};

/// DP006.
pub static PHASE_IS_KNOWN: Promise = Promise {
    rule: "DP006",
    sentence: "the phase is one that Landscaper knows",
    is_kept: |Change { new, .. }| new.phase != Phase::Other,
};

/// DP014. An interrupt replaces the job and ends it as failed in one write.
pub static JOBS_COME_ONE_BY_ONE: Promise = Promise {
    rule: "DP014",
    sentence: "jobID changes only when the job before it is finished",
    is_kept: |Change { old, new }| {
        let is_interrupt = new.job() == Job::Done && new.phase.is_failed();
        new.job == old.job || old.job() != Job::Open || is_interrupt
    },
};

/// All, in the order of their rules.
pub static PROMISES: [&Promise; 7] = [
    &FINISHED_IS_FINAL,
    &FINISHED_IS_THE_JOB,
    &RESULT_STAYS,
    &PICKED_UP,
    &UNINSTALLS_WHAT_IS_DELETED,
    &PHASE_IS_KNOWN,
    &JOBS_COME_ONE_BY_ONE,
];

/// The promises that a write breaks.
pub fn broken(change: &Change<'_>) -> Vec<&'static Promise> {
    PROMISES.into_iter().filter(|promise| !(promise.is_kept)(change)).collect()
}

/// Whether a write begins work.
pub(super) fn begins(change: &Change<'_>) -> bool {
    !change.old.phase.is_working() && change.new.phase.is_working()
}

/// Whether somebody works without a job.
fn is_stray(status: &Status<'_>) -> bool {
    status.phase.is_working() && status.job() == Job::None
}

/// Whether a write says when the work begins: not before the last time. Times are written in whole seconds.
pub(super) fn is_stamped(Change { old, new }: &Change<'_>) -> bool {
    new.reconciled.is_some_and(|time| old.reconciled.is_none_or(|before| time >= before))
}

fn has_same_phase(old: &Status<'_>, new: &Status<'_>) -> bool {
    old.phase == new.phase && (old.phase != Phase::Other || old.phase_text == new.phase_text)
}
