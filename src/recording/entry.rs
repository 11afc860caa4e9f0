//! The entries that a recorder queues for the thread that writes the recording.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use time::OffsetDateTime;

use super::Metrics;
use super::reads::DecisionInputs;
use super::review::RequestCopy;
use crate::admission::{Phase, Verdict};
use crate::catalog::{Change, Coverage, Kind};

/// The options of a recording.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder for the recording, which is created if it does not exist.
    pub folder: PathBuf,
    /// Maximum size of the recording in bytes. The recording ends when it reaches this size.
    pub limit: u64,
    /// The rule families that are enabled, such as `OW`, for the header of the recording.
    pub families: Vec<&'static str>,
}

/// An entry in the queue of the thread that writes a recording.
pub(super) enum Entry {
    Configuration { change: u64, text: String },
    Coverage { change: u64, kind: &'static Kind, coverage: Coverage },
    Changed { change: u64, of: Change },
    Decision(Box<RecordedDecision>),
    End,
}

/// A decision about a request, with its inputs. `verdict` is `None` if the decision timed out or panicked.
pub(super) struct RecordedDecision {
    pub(super) changes: u64,
    pub(super) changes_at_end: u64,
    pub(super) at: OffsetDateTime,
    pub(super) phase: Phase,
    pub(super) request: RequestCopy,
    pub(super) inputs: DecisionInputs,
    pub(super) verdict: Option<Verdict>,
    pub(super) bytes: usize,
}

/// The state of a recording that request handlers, watches and the writer share.
pub(super) struct Shared {
    pub(super) changes: AtomicU64,
    pub(super) queued_bytes: AtomicUsize,
    pub(super) lost_changes: AtomicU64,
    pub(super) lost_decisions: AtomicU64,
    pub(super) has_ended: AtomicBool,
    pub(super) metrics: Metrics,
}

impl Shared {
    pub(super) fn new(metrics: Metrics) -> Self {
        Self {
            changes: AtomicU64::new(0),
            queued_bytes: AtomicUsize::new(0),
            lost_changes: AtomicU64::new(0),
            lost_decisions: AtomicU64::new(0),
            has_ended: AtomicBool::new(false),
            metrics,
        }
    }
}
