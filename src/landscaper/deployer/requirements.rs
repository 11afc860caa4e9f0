//! Requirements of Landscaper's deployer contract that every write to a DeployItem's status must meet.
//!
//! This module contains only requirements that Landscaper and its own deployers always meet. The text of the contract
//! has more requirements, but Landscaper and its deployers do not follow them all. `docs/deployer-contract.md` lists
//! these other requirements, with the reasons why Portcullis does not check them.
//!
//! The requirements apply to old and new versions of Landscaper. Old versions also write the phase to the field
//! `status.deployItemPhase`, new versions write it only to `status.phase`.

use super::phase::Phase;
use super::status::{Change, Job, Status};

/// A requirement of Landscaper's deployer contract that every write of a DeployItem's status must meet.
pub struct Requirement {
    /// The id of the rule that enforces this requirement of the deployer contract.
    pub rule: &'static str,
    /// The requirement of the deployer contract as a sentence, for messages and documentation.
    pub sentence: &'static str,
    /// Returns whether a status write meets this requirement of the deployer contract.
    pub is_met: fn(&Change<'_>) -> bool,
}

/// The requirement that rule DP001 enforces: a finished job has a final phase.
pub static FINISHED_IS_FINAL: Requirement = Requirement {
    rule: "DP001",
    sentence: "if jobIDFinished equals jobID, the phase is Succeeded, Failed or DeleteFailed",
    is_met: |change| change.new.job() != Job::Done || change.new.phase.is_final(),
};

/// The requirement that rule DP002 enforces: a write changes `jobIDFinished` only to the value of `jobID`.
pub static FINISHED_IS_THE_JOB: Requirement = Requirement {
    rule: "DP002",
    sentence: "jobIDFinished changes only to the value of jobID",
    is_met: |Change { old, new }| new.finished == old.finished || new.finished == new.job,
};

/// The requirement that rule DP003 enforces: after a job has finished, its phase does not change. This applies only to
/// the final phases Succeeded, Failed and DeleteFailed. A write may correct any other phase of a finished job.
pub static RESULT_IS_FINAL: Requirement = Requirement {
    rule: "DP003",
    sentence: "the phase of a finished job does not change until the next job",
    is_met: |Change { old, new }| {
        let is_same_job = old.job() == Job::Done && (old.job, old.finished) == (new.job, new.finished);
        !is_same_job || has_same_phase(old, new) || !old.phase.is_final()
    },
};

/// The requirement that rule DP004 enforces: a deployer starts work only on a requested job that is not finished. The
/// write that starts the work must set `lastReconcileTime`. While a deployer works, no write may clear both `jobID` and
/// `jobIDFinished`.
pub static PICKED_UP: Requirement = Requirement {
    rule: "DP004",
    sentence: "work starts only if jobID and jobIDFinished differ, sets lastReconcileTime, and never clears these IDs",
    is_met: |change| match begins(change) {
        true => change.new.job() == Job::Open && is_stamped(change),
        false => !is_stray(&change.new) || is_stray(&change.old),
    },
};

/// The requirement that rule DP005 enforces: deletion phases occur only on DeployItems that are being deleted.
pub static UNINSTALLS_WHAT_IS_DELETED: Requirement = Requirement {
    rule: "DP005",
    sentence: "InitDelete, Deleting and DeleteFailed occur only on DeployItems that are being deleted",
    is_met: |Change { new, .. }| !new.phase.is_deletion() || new.being_deleted,
};

/// The requirement that rule DP006 enforces: a write sets only phases that Landscaper defines.
pub static PHASE_IS_KNOWN: Requirement = Requirement {
    rule: "DP006",
    sentence: "the phase is known to Landscaper",
    is_met: |Change { new, .. }| new.phase != Phase::Other,
};

/// The requirement that rule DP014 enforces: `jobID` changes only when the previous Landscaper job has finished. An
/// interrupt of a job is an exception: one write may set `jobID` and `jobIDFinished` to the same new id, together with
/// a phase such as `Failed`.
pub static JOBS_COME_ONE_BY_ONE: Requirement = Requirement {
    rule: "DP014",
    sentence: "jobID changes only when the previous job has finished",
    is_met: |Change { old, new }| {
        let is_interrupt = new.job() == Job::Done && new.phase.is_failed();
        new.job == old.job || old.job() != Job::Open || is_interrupt
    },
};

/// All requirements of Landscaper's deployer contract for writes of a DeployItem's status. They are sorted by the id of
/// the rule that enforces them.
pub static REQUIREMENTS: [&Requirement; 7] = [
    &FINISHED_IS_FINAL,
    &FINISHED_IS_THE_JOB,
    &RESULT_IS_FINAL,
    &PICKED_UP,
    &UNINSTALLS_WHAT_IS_DELETED,
    &PHASE_IS_KNOWN,
    &JOBS_COME_ONE_BY_ONE,
];

/// Returns the requirements of the deployer contract that a status write violates.
pub fn violated(change: &Change<'_>) -> Vec<&'static Requirement> {
    REQUIREMENTS.into_iter().filter(|requirement| !(requirement.is_met)(change)).collect()
}

/// Reports whether a status write starts work on a DeployItem. This is the case if the new phase is a working phase,
/// such as `Init`, and the old phase is empty or final.
pub(super) fn begins(change: &Change<'_>) -> bool {
    !change.old.phase.is_working() && change.new.phase.is_working()
}

/// Reports whether a deployer works on a DeployItem although Landscaper has never requested a job.
fn is_stray(status: &Status<'_>) -> bool {
    status.phase.is_working() && status.job() == Job::None
}

/// Reports whether `lastReconcileTime` is set after a status write, and is not earlier than its previous value. The two
/// times may be equal, because their resolution is one second.
pub(super) fn is_stamped(Change { old, new }: &Change<'_>) -> bool {
    new.reconciled.is_some_and(|time| old.reconciled.is_none_or(|before| time >= before))
}

fn has_same_phase(old: &Status<'_>, new: &Status<'_>) -> bool {
    old.phase == new.phase && (old.phase != Phase::Other || old.phase_text == new.phase_text)
}
