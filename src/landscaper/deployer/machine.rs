//! The state machine of a DeployItem: its states, the transitions between them, and the actor of each transition.
//!
//! A state describes the progress of the DeployItem's job, and whether a deployer works on the DeployItem.
//! [`TRANSITIONS`] lists the writes that Landscaper and its own deployers make. Other writes are tolerated if no
//! [requirement](super::requirements) forbids them, because a deployer may be implemented differently.
//!
//! Source: the places in Landscaper that write `deployitems/status`: `pkg/landscaper/execution`,
//! `pkg/landscaper/controllers/{deployitem,execution}`, `pkg/deployer/{lib,helm,manifest,container,mock}`.

use super::requirements::{Requirement, violated};
use super::status::{Change, Job, Status};
use Actor::{Deployer, Landscaper};
use State::{Finished, New, Triggered, Uninstalling, Working};

/// A state of a DeployItem: the progress of its job, and whether a deployer works on the DeployItem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Landscaper has not requested a job for the DeployItem yet.
    New,
    /// Landscaper has requested a job, and no deployer works on it yet.
    Triggered,
    /// A deployer processes the DeployItem, because Landscaper has requested a job with a new `jobID`.
    Working,
    /// A deployer is uninstalling the DeployItem: it deletes the objects that it deployed before.
    Uninstalling,
    /// The job of the DeployItem is finished: `jobIDFinished` equals `jobID`, and the phase is final.
    Finished,
    /// A deployer works on the DeployItem, although Landscaper has not requested a job.
    Stray,
    /// `jobIDFinished` equals `jobID`, as for a finished job, but the phase is not final.
    Contradiction,
}

/// The description of a state of a DeployItem, for messages and documentation.
pub struct StateInfo {
    /// The state of a DeployItem that this `StateInfo` describes.
    pub state: State,
    /// The name of the state in messages, such as `triggered`.
    pub name: &'static str,
    /// How `jobID` and `jobIDFinished` compare in this state, such as `different`.
    pub job: &'static str,
    /// A description of the values that `status.phase` of a DeployItem has in this state, such as `Init, Progressing`.
    pub phase: &'static str,
    /// The meaning of the state, in one sentence.
    pub meaning: &'static str,
    /// The id of the rule that prevents this state, such as `DP004`, if any.
    pub prevented_by: Option<&'static str>,
}

/// The descriptions of all states of a DeployItem, in the order of [`State`].
pub static STATES: [StateInfo; 7] = [
    StateInfo {
        state: State::New,
        name: "new",
        job: "both empty",
        phase: "empty",
        meaning: "Landscaper has created the DeployItem without a job",
        prevented_by: None,
    },
    StateInfo {
        state: State::Triggered,
        name: "triggered",
        job: "different",
        phase: "empty or final",
        meaning: "Landscaper has requested a job, and no deployer has picked it up",
        prevented_by: None,
    },
    StateInfo {
        state: State::Working,
        name: "working",
        job: "different",
        phase: "Init, Progressing",
        meaning: "a deployer processes the job",
        prevented_by: None,
    },
    StateInfo {
        state: State::Uninstalling,
        name: "uninstalling",
        job: "different",
        phase: "InitDelete, Deleting",
        meaning: "a deployer is uninstalling; it ends by removing the finalizer, not with a phase",
        prevented_by: None,
    },
    StateInfo {
        state: State::Finished,
        name: "finished",
        job: "equal",
        phase: "Succeeded, Failed, DeleteFailed",
        meaning: "the deployer has finished the job, or Landscaper has ended it",
        prevented_by: None,
    },
    StateInfo {
        state: State::Stray,
        name: "stray",
        job: "both empty",
        phase: "not final",
        meaning: "a deployer works without a job",
        prevented_by: Some("DP004"),
    },
    StateInfo {
        state: State::Contradiction,
        name: "contradiction",
        job: "equal",
        phase: "empty or not final",
        meaning: "the job is finished by its ids, but the phase is not final",
        prevented_by: Some("DP001"),
    },
];

impl State {
    /// Returns the state of a DeployItem with this status.
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

    /// Returns the description of the state.
    pub fn info(self) -> &'static StateInfo {
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

/// The author of a write to a DeployItem's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// Landscaper itself, not one of its deployers.
    Landscaper,
    /// The deployer of the DeployItem's type.
    Deployer,
}

impl Actor {
    /// Returns `Landscaper` or `deployer`, for messages. These are the two programs that write to the status of a
    /// DeployItem.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Landscaper => "Landscaper",
            Self::Deployer => "deployer",
        }
    }
}

/// A write that moves a DeployItem from one state to another.
#[derive(Debug)]
pub struct Transition {
    /// The state of the DeployItem before the write.
    pub from: State,
    /// The state of the DeployItem after the write.
    pub to: State,
    /// The author of the write: Landscaper or a deployer.
    pub by: Actor,
    /// The name of this transition in messages and documentation. For example, `pickup` means that a deployer starts to
    /// process the DeployItem.
    pub name: &'static str,
}

const fn transition(from: State, to: State, by: Actor, name: &'static str) -> Transition {
    Transition { from, to, by, name }
}

/// The status writes that Landscaper and its deployers make, as transitions between states of a DeployItem.
pub static TRANSITIONS: [Transition; 31] = [
    transition(New, Triggered, Landscaper, "trigger"),
    transition(Finished, Triggered, Landscaper, "trigger"),
    transition(Triggered, Working, Deployer, "pickup"),
    transition(Triggered, Uninstalling, Deployer, "pickup"),
    transition(Working, Working, Deployer, "progress"),
    transition(Uninstalling, Uninstalling, Deployer, "progress"),
    transition(Working, Working, Deployer, "retryable error"),
    transition(Uninstalling, Uninstalling, Deployer, "retryable error"),
    transition(Working, Finished, Deployer, "finish"),
    transition(Uninstalling, Finished, Deployer, "finish"),
    transition(Triggered, Finished, Deployer, "nothing changed"),
    transition(Triggered, Finished, Deployer, "target not found"),
    transition(Working, Finished, Deployer, "target not found"),
    transition(Uninstalling, Finished, Deployer, "target not found"),
    transition(Triggered, Finished, Landscaper, "pickup timeout"),
    transition(Working, Finished, Landscaper, "pickup timeout"),
    transition(Uninstalling, Finished, Landscaper, "pickup timeout"),
    transition(New, Finished, Landscaper, "interrupt"),
    transition(Triggered, Finished, Landscaper, "interrupt"),
    transition(Working, Finished, Landscaper, "interrupt"),
    transition(Uninstalling, Finished, Landscaper, "interrupt"),
    transition(Finished, Finished, Landscaper, "interrupt"),
    transition(New, Working, Deployer, "test-reconcile"),
    transition(Finished, Working, Deployer, "test-reconcile"),
    transition(New, Uninstalling, Deployer, "test-reconcile"),
    transition(Finished, Uninstalling, Deployer, "test-reconcile"),
    transition(Working, Triggered, Deployer, "phase first"),
    transition(Uninstalling, Triggered, Deployer, "phase first"),
    transition(Triggered, Triggered, Deployer, "phase first"),
    transition(Triggered, Finished, Deployer, "jobIDFinished after the phase"),
    transition(Working, Uninstalling, Deployer, "deleted while at work"),
];

/// The result of checking a status write against the deployer contract.
pub enum Verdict {
    /// The write changes neither the phase of the DeployItem, nor its `jobID` or `jobIDFinished`.
    Unchanged,
    /// The write matches these known transitions between states of a DeployItem. There can be several, because
    /// different transitions can have the same states before and after.
    Known(Vec<&'static Transition>),
    /// The write is not a known transition, but no requirement of Landscaper's deployer contract forbids it.
    Tolerated,
    /// The write violates these requirements of Landscaper's deployer contract.
    Violated(Vec<&'static Requirement>),
}

/// Classifies a write of a DeployItem's status: first by the requirements of the deployer contract that it violates,
/// then by the known transitions that it matches.
pub fn judge(change: &Change<'_>) -> Verdict {
    let violated = violated(change);
    if !violated.is_empty() {
        return Verdict::Violated(violated);
    }
    let parts = |status: &Status<'_>| (status.phase_text.to_owned(), status.job.to_owned(), status.finished.to_owned());
    if parts(&change.old) == parts(&change.new) {
        return Verdict::Unchanged;
    }
    let (from, to) = (State::of(&change.old), State::of(&change.new));
    let known: Vec<_> =
        TRANSITIONS.iter().filter(|transition| (transition.from, transition.to) == (from, to)).collect();
    if known.is_empty() { Verdict::Tolerated } else { Verdict::Known(known) }
}
