//! The companion: what acts after admission, and the one face that writes to the cluster.
//!
//! ```text
//! watches ─► catalog ─► Change ─► affected objects ─► queue ─► workers ─► Controller::reconcile ─► writes
//!                                                       ▲
//!                               leadership: workers run in one replica, all others keep their catalog warm
//! ```
//!
//! A [`Controller`] says which kinds it watches and what it does for one object. It reads what counts from the API
//! server, decides by a pure function of its system, and makes one write after the other, each guarded by the
//! resourceVersion of what it read. So a companion that is killed anywhere is followed by one that sees how far it came,
//! and a replica that takes itself for the leader for too long is refused by the API server.

mod companion;
pub mod controller;
pub mod events;
pub mod leadership;
pub mod metrics;
pub mod queue;
pub mod registration;

pub use companion::{Companion, Lead};
pub use controller::{Controller, Failure, Next, Permission, Tools};
pub use events::{Events, Severity};
pub use leadership::{Elector, Timing};
pub use metrics::Metrics;

/// Every controller, as `portcullis manifests` grants their rights; which of them run is said on the command line.
pub fn controllers() -> Vec<Box<dyn Controller>> {
    Vec::new()
}
