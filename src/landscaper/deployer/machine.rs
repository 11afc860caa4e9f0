//! The life of a DeployItem as a table: its states, the moves between them and who makes them.
//!
//! A state is where the job is and whether anybody works on it. The rows of [`MOVES`] are the writes that Landscaper and
//! its own deployers make. What no row has and no [promise](super::promises) forbids is tolerated: a deployer may be
//! written in a way that nobody has thought of.
//!
//! Source: the places in Landscaper that write `deployitems/status`: `pkg/landscaper/execution`,
//! `pkg/landscaper/controllers/{deployitem,execution}`, `pkg/deployer/{lib,helm,manifest,container,mock}`.

use super::promises::{Promise, broken};
use super::status::{Change, Job, Status};

/// Where a DeployItem is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// No job yet.
    New,
    /// A job is open and nobody works on it.
    Triggered,
    /// A deployer works on the job.
    Working,
    /// A deployer uninstalls.
    Uninstalling,
    /// The job is finished.
    Finished,
    /// Somebody works without a job.
    Stray,
    /// The job is finished, and the phase says that it is not.
    Contradiction,
}

/// A row about a state.
pub struct StateRow {
    /// Which.
    pub state: State,
    /// Its name.
    pub name: &'static str,
    /// What the ids of the job are.
    pub job: &'static str,
    /// What the phase is.
    pub phase: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// The rule that keeps DeployItems out of it.
    pub kept_out_by: Option<&'static str>,
}

/// The states.
pub static STATES: [StateRow; 7] = [
    StateRow {
        state: State::New,
        name: "new",
        job: "both empty",
        phase: "empty",
        meaning: "Landscaper has made it and asked for nothing",
        kept_out_by: None,
    },
    StateRow {
        state: State::Triggered,
        name: "triggered",
        job: "different",
        phase: "empty or final",
        meaning: "Landscaper has asked for something, and no deployer has taken it",
        kept_out_by: None,
    },
    StateRow {
        state: State::Working,
        name: "working",
        job: "different",
        phase: "Init, Progressing",
        meaning: "a deployer is at work",
        kept_out_by: None,
    },
    StateRow {
        state: State::Uninstalling,
        name: "uninstalling",
        job: "different",
        phase: "InitDelete, Deleting",
        meaning: "a deployer is uninstalling; it ends with the finalizer, not with a phase",
        kept_out_by: None,
    },
    StateRow {
        state: State::Finished,
        name: "finished",
        job: "equal",
        phase: "Succeeded, Failed, DeleteFailed",
        meaning: "the deployer, or Landscaper in its place, has ended the job",
        kept_out_by: None,
    },
    StateRow {
        state: State::Stray,
        name: "stray",
        job: "both empty",
        phase: "not final",
        meaning: "somebody works without having been asked",
        kept_out_by: Some("DP004"),
    },
    StateRow {
        state: State::Contradiction,
        name: "contradiction",
        job: "equal",
        phase: "empty or not final",
        meaning: "the ids say that the job is finished, the phase says that it is not",
        kept_out_by: Some("DP001"),
    },
];

impl State {
    /// The state of a DeployItem.
    pub fn of(status: &Status<'_>) -> Self {
        let phase = status.phase;
        match status.job() {
            Job::Done if phase.is_final() => Self::Finished,
            Job::Done => Self::Contradiction,
            Job::None if phase.is_working() => Self::Stray,
            Job::None => Self::New,
            Job::Open if !phase.is_working() => Self::Triggered,
            Job::Open if phase.is_deletion() => Self::Uninstalling,
            Job::Open => Self::Working,
        }
    }

    /// Its row.
    pub fn row(self) -> &'static StateRow {
        let [new, triggered, working, uninstalling, finished, stray, contradiction] = &STATES;
        match self {
            Self::New => new,
            Self::Triggered => triggered,
            Self::Working => working,
            Self::Uninstalling => uninstalling,
            Self::Finished => finished,
            Self::Stray => stray,
            Self::Contradiction => contradiction,
        }
    }
}

/// Who writes a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// Landscaper.
    Landscaper,
    /// The deployer of the DeployItem's type.
    Deployer,
}

impl Actor {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Landscaper => "Landscaper",
            Self::Deployer => "deployer",
        }
    }
}

/// A write that moves a DeployItem from one state to another.
#[derive(Debug)]
pub struct Move {
    /// Before.
    pub from: State,
    /// After.
    pub to: State,
    /// Who makes it.
    pub by: Actor,
    /// What it is called.
    pub name: &'static str,
}

const fn row(from: State, to: State, by: Actor, name: &'static str) -> Move {
    Move { from, to, by, name }
}

use Actor::{Deployer, Landscaper};
use State::{Finished, New, Triggered, Uninstalling, Working};

/// The writes that happen.
pub static MOVES: [Move; 31] = [
    row(New, Triggered, Landscaper, "trigger"),
    row(Finished, Triggered, Landscaper, "trigger"),
    row(Triggered, Working, Deployer, "pickup"),
    row(Triggered, Uninstalling, Deployer, "pickup"),
    row(Working, Working, Deployer, "progress"),
    row(Uninstalling, Uninstalling, Deployer, "progress"),
    row(Working, Working, Deployer, "retryable error"),
    row(Uninstalling, Uninstalling, Deployer, "retryable error"),
    row(Working, Finished, Deployer, "finish"),
    row(Uninstalling, Finished, Deployer, "finish"),
    row(Triggered, Finished, Deployer, "nothing changed"),
    row(Triggered, Finished, Deployer, "target not found"),
    row(Working, Finished, Deployer, "target not found"),
    row(Uninstalling, Finished, Deployer, "target not found"),
    row(Triggered, Finished, Landscaper, "pickup timeout"),
    row(Working, Finished, Landscaper, "pickup timeout"),
    row(Uninstalling, Finished, Landscaper, "pickup timeout"),
    row(New, Finished, Landscaper, "interrupt"),
    row(Triggered, Finished, Landscaper, "interrupt"),
    row(Working, Finished, Landscaper, "interrupt"),
    row(Uninstalling, Finished, Landscaper, "interrupt"),
    row(Finished, Finished, Landscaper, "interrupt"),
    row(New, Working, Deployer, "test-reconcile"),
    row(Finished, Working, Deployer, "test-reconcile"),
    row(New, Uninstalling, Deployer, "test-reconcile"),
    row(Finished, Uninstalling, Deployer, "test-reconcile"),
    row(Working, Triggered, Deployer, "phase first"),
    row(Uninstalling, Triggered, Deployer, "phase first"),
    row(Triggered, Triggered, Deployer, "phase first"),
    row(Triggered, Finished, Deployer, "jobIDFinished after the phase"),
    row(Working, Uninstalling, Deployer, "deleted while at work"),
];

/// What the table says of a write.
pub enum Verdict {
    /// Nothing that the contract is about has changed.
    Unchanged,
    /// It is one of these.
    Known(Vec<&'static Move>),
    /// Nobody is known to write this, and no promise forbids it.
    Tolerated,
    /// It breaks these promises.
    Broken(Vec<&'static Promise>),
}

/// Judges a write.
pub fn judge(change: &Change<'_>) -> Verdict {
    let broken = broken(change);
    if !broken.is_empty() {
        return Verdict::Broken(broken);
    }
    let parts = |status: &Status<'_>| (status.phase_text.to_owned(), status.job.to_owned(), status.finished.to_owned());
    if parts(&change.old) == parts(&change.new) {
        return Verdict::Unchanged;
    }
    let (from, to) = (State::of(&change.old), State::of(&change.new));
    let known: Vec<_> = MOVES.iter().filter(|row| (row.from, row.to) == (from, to)).collect();
    if known.is_empty() { Verdict::Tolerated } else { Verdict::Known(known) }
}
