//! Self-managed certificates: one CA in a Secret, a leaf certificate for every replica, and the caBundles of the
//! webhook configurations.
//!
//! ```text
//! keeper ─ observes, signs, takes a step ─┬ cluster: the Secret, the bundles, the watches
//!                                      ├ issue: CA, leaf
//!                                      └ steps, provided: (state, bundles, now) → next step; pure
//!                                            └ state: contents of the Secret ─ certificate
//! ```
//!
//! There is no leader. All replicas compute the same step from what they read, and write it with the resourceVersion
//! that they read: one succeeds, the others read again. If a replica dies between two steps, another one continues.
//!
//! Replicas with a certificate that is issued elsewhere keep its CA in the same bundles; see [`provided`].
//!
//! This module does not depend on the server: a callback receives each leaf.

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
