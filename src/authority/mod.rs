//! Self-managed certificates. There is one CA in a Secret, a leaf certificate for every replica, and the caBundles of
//! the webhook configurations.
//!
//! ```text
//! keeper ─ observes, signs, takes a step ─┬ cluster: the Secret, the bundles, the watches
//!                                      ├ issue: CA, leaf
//!                                      └ steps, provided: (state, bundles, now) → next step; pure
//!                                            └ state: contents of the Secret ─ certificate
//! ```
//!
//! There is no leader. All replicas read the same objects, so they compute the same step. Each replica tries to write
//! it with the resourceVersion that it read. One write succeeds, and the other replicas read again. If a replica dies
//! between two steps, another one continues.
//!
//! If the certificate of a replica is issued elsewhere, the replica adds its CA to the same bundles; see [`provided`].
//!
//! This module does not depend on the server, because a callback receives each leaf certificate.

pub mod certificate;
pub mod clock;
pub mod cluster;
pub mod issue;
pub mod keeper;
pub mod metrics;
pub mod provided;
pub mod state;
pub mod steps;

pub use clock::{Clock, Reading};
pub use keeper::{Keeper, Settings, Source};
pub use metrics::Metrics;
pub use steps::Timing;
