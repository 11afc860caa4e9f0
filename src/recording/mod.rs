//! Recordings of decisions. `portcullis serve --record DIR` writes a recording, and `portcullis replay` repeats the
//! decisions and compares the results.
//!
//! A recording is a file of JSON lines ([`line::Line`]). It contains all inputs of decisions, so that a replay is
//! exact:
//!
//! - the header, with version, enabled rule families and start time
//! - the configuration file, at the start and whenever it changes
//! - every change of the catalog from the first list on, numbered in the order of arrival
//! - for each decision: the review, the number of the last change before it, the objects read from the API server, the
//!   findings in kustomize trees, and the result
//!
//! ```text
//! serve:  handler ─┬─► bounded queue ─► writer thread: redact, serialize, write within the limit
//!         watches ─┘        └ full: the entry is dropped, counted, and reported in the file
//! replay: lines sorted by change ─► recorded catalog, policy and time ─► gate ─► comparison with recorded decision
//! ```
//!
//! The recording contains all changes of the catalog, and not only the objects that a decision has read. So a newer
//! version of portcullis can replay the recording, even if its rules look up other objects.

mod answer;
mod compare;
mod decisions;
mod entry;
pub mod line;
mod metrics;
mod reads;
mod recorder;
mod redact;
mod replay;
mod review;
mod writer;

pub use answer::Answer;
pub use compare::{Aspect, Difference};
pub use decisions::RecordedDecisions;
pub use entry::Options;
pub use metrics::Metrics;
pub use reads::{RecordedReads, RecordedTrees};
pub use recorder::Recorder;
pub use replay::{Malformed, Recording, Replayed, replay};
