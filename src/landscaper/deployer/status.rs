//! The status of a DeployItem, in both generations of Landscaper.
//!
//! Until Landscaper 0.51 deployers wrote `deployItemPhase` beside `phase`; since then `phase` is all there is, and the
//! other is cleared. The effective phase is `deployItemPhase` where it says something, else `phase`.
//!
//! Source: `DeployItemStatus` in Landscaper's `apis/core/v1alpha1/types_deployitem.go`.

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::phase::Phase;
use crate::landscaper::decode::text;

/// What a DeployItem's status says to Landscaper and to deployers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status<'v> {
    /// The effective phase as it is written; empty without.
    pub phase_text: &'v str,
    /// What it means.
    pub phase: Phase,
    /// `jobID`: what is to be done; empty without.
    pub job: &'v str,
    /// `jobIDFinished`: what was done last; empty without.
    pub finished: &'v str,
    /// `lastReconcileTime`: when a deployer took it.
    pub reconciled: Option<OffsetDateTime>,
    /// `jobIDGenerationTime`: when Landscaper asked for it.
    pub generated: Option<OffsetDateTime>,
    /// `deployer.identity`; empty without.
    pub deployer: &'v str,
    /// Whether the DeployItem has a deletion timestamp.
    pub being_deleted: bool,
}

/// Where a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Job {
    /// There has been none: both ids are empty.
    None,
    /// It is to be done, or being done: the ids differ.
    Open,
    /// It is done: the ids are equal.
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
            being_deleted: item.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null()),
        }
    }

    /// Where its job is.
    pub fn job(&self) -> Job {
        match (self.job, self.finished) {
            ("", "") => Job::None,
            (job, finished) if job == finished => Job::Done,
            _ => Job::Open,
        }
    }

    /// Whether a deployer has taken the job, as Landscaper sees it (`HasBeenPickedUp`): a clock that goes behind
    /// Landscaper's makes it look as if none had.
    pub fn is_picked_up(&self) -> bool {
        self.reconciled.is_some_and(|reconciled| self.generated.is_none_or(|generated| reconciled >= generated))
    }

    /// Whether Landscaper gives up waiting for a deployer (`isPickupTimeoutExceeded`). With a timeout of 0 it never asks.
    pub fn is_pickup_overdue(&self, now: OffsetDateTime, timeout: time::Duration) -> bool {
        let waited = self.generated.map_or(time::Duration::ZERO, |generated| now - generated);
        waited >= timeout
    }

    /// The parts that the contract is about, for people: `phase Init, jobID "b", jobIDFinished "a"`.
    pub fn told(&self) -> String {
        let Self { phase_text, job, finished, .. } = self;
        let deletion = if self.being_deleted { ", being deleted" } else { "" };
        format!("phase {phase_text:?}, jobID {job:?}, jobIDFinished {finished:?}{deletion}")
    }
}

/// A time as Kubernetes writes it.
fn time(text: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text, &Rfc3339).ok()
}

/// A write of a status: what it was and what it is to be.
#[derive(Debug, Clone, Copy)]
pub struct Change<'v> {
    /// Before.
    pub old: Status<'v>,
    /// After.
    pub new: Status<'v>,
}

impl<'v> Change<'v> {
    /// The change from one state of a DeployItem to another.
    pub fn of(old: &'v Value, new: &'v Value) -> Self {
        Self { old: Status::of(old), new: Status::of(new) }
    }
}
