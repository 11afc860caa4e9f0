//! The status of a DeployItem, in the old and the current format of Landscaper.
//!
//! Up to Landscaper 0.51, deployers wrote both `deployItemPhase` and `phase`. Newer deployers write only `phase`, and
//! clear `deployItemPhase`. The effective phase is `deployItemPhase` if it is not empty, otherwise `phase`.
//!
//! Source: `DeployItemStatus` in Landscaper's `apis/core/v1alpha1/types_deployitem.go`.

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::phase::Phase;
use crate::admission::{Metadata, Path};
use crate::landscaper::decode::text;

/// The fields of a DeployItem's status that Landscaper and deployers exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status<'v> {
    /// The phase as text. This is the value of `deployItemPhase` if that field is not empty, otherwise the value of
    /// `phase`. Empty if both fields are missing.
    pub phase_text: &'v str,
    /// The phase, parsed from `phase_text`.
    pub phase: Phase,
    /// `jobID`: the id of the requested job; empty if it is missing.
    pub job: &'v str,
    /// `jobIDFinished`: the id of the job that finished last; empty if it is missing.
    pub finished: &'v str,
    /// `lastReconcileTime`: when a deployer picked up the job; `None` if it is missing or invalid.
    pub reconciled: Option<OffsetDateTime>,
    /// `jobIDGenerationTime`: when Landscaper requested the job; `None` if it is missing or invalid.
    pub generated: Option<OffsetDateTime>,
    /// `deployer.identity`: the identity of the deployer that processed the DeployItem; empty if it is missing.
    pub deployer: &'v str,
    /// Whether the DeployItem has a deletion timestamp.
    pub being_deleted: bool,
}

/// The paths of the fields of a DeployItem's status that are read into [`Status`].
pub(in crate::landscaper) const READ: &[Path] = &[
    &["status", "phase"],
    &["status", "deployItemPhase"],
    &["status", "jobID"],
    &["status", "jobIDFinished"],
    &["status", "lastReconcileTime"],
    &["status", "jobIDGenerationTime"],
    &["status", "deployer"],
];

/// The progress of a DeployItem's job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Job {
    /// There has been no job: `jobID` and `jobIDFinished` are empty.
    None,
    /// The job is requested or in progress: `jobID` and `jobIDFinished` differ.
    Open,
    /// The job has finished: `jobID` and `jobIDFinished` are equal.
    Done,
}

impl<'v> Status<'v> {
    /// Reads the status of a DeployItem.
    pub fn of(item: &'v Value) -> Self {
        let status = item.get("status").unwrap_or(&Value::Null);
        let part = |key| text(status, key).unwrap_or_default();
        let phase_text = text(status, "deployItemPhase").unwrap_or_else(|| part("phase"));
        Self {
            phase_text,
            phase: Phase::read(phase_text),
            job: part("jobID"),
            finished: part("jobIDFinished"),
            reconciled: time(part("lastReconcileTime")),
            generated: time(part("jobIDGenerationTime")),
            deployer: status.get("deployer").and_then(|deployer| text(deployer, "identity")).unwrap_or_default(),
            being_deleted: Metadata::of(item).is_deleting(),
        }
    }

    /// Returns the progress of the DeployItem's last job. Landscaper requests a job with a new `jobID`. The job is
    /// finished when `jobIDFinished` equals this id.
    pub fn job(&self) -> Job {
        match (self.job, self.finished) {
            ("", "") => Job::None,
            (job, finished) if job == finished => Job::Done,
            _ => Job::Open,
        }
    }

    /// Reports whether a deployer has picked up the job, as Landscaper computes it (`HasBeenPickedUp`).
    ///
    /// If the clock of the deployer is behind that of Landscaper, the result can be `false` although the job was picked
    /// up.
    pub fn is_picked_up(&self) -> bool {
        self.reconciled.is_some_and(|reconciled| self.generated.is_none_or(|generated| reconciled >= generated))
    }

    /// Reports whether `timeout` has passed between the request of the job and the time `now`
    /// (`isPickupTimeoutExceeded`). If the time of the request is missing, the elapsed time counts as zero.
    ///
    /// Landscaper skips this check if `timeout` is 0. This function does not.
    pub fn is_pickup_overdue(&self, now: OffsetDateTime, timeout: time::Duration) -> bool {
        let waited = self.generated.map_or(time::Duration::ZERO, |generated| now - generated);
        waited >= timeout
    }

    /// Returns the phase and the job ids as a text for messages, such as `phase "Init", jobID "b", jobIDFinished "a"`.
    pub fn summary(&self) -> String {
        let Self { phase_text, job, finished, .. } = self;
        let deletion = if self.being_deleted { ", being deleted" } else { "" };
        format!("phase {phase_text:?}, jobID {job:?}, jobIDFinished {finished:?}{deletion}")
    }
}

/// Parses a time in the format of Kubernetes (RFC 3339); `None` if the text is invalid.
fn time(text: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text, &Rfc3339).ok()
}

/// A write of a DeployItem's status: the old and the new status.
#[derive(Debug, Clone, Copy)]
pub struct Change<'v> {
    /// The status before the write.
    pub old: Status<'v>,
    /// The status after the write.
    pub new: Status<'v>,
}

impl<'v> Change<'v> {
    /// Reads the statuses of a DeployItem before and after a write.
    pub fn of(old: &'v Value, new: &'v Value) -> Self {
        Self { old: Status::of(old), new: Status::of(new) }
    }
}
