//! Certificates that portcullis keeps itself: one CA in a Secret, a leaf of its own in every replica, and the caBundles
//! of our own webhook configurations.
//!
//! ```text
//! keeper ─ looks, signs, takes a step ─┬ cluster: the Secret, the bundles, the watches
//!                                      ├ issue: CA, leaf
//!                                      └ steps: (state, bundles, now) → what is next; pure
//!                                            └ state: what the Secret holds ─ certificate
//! ```
//!
//! No replica leads. All compute the same step from what they read, and write it under the version that they read: one
//! wins, the others read again. A replica that dies between two steps leaves what the next one goes on from.
//!
//! The room knows no server: a leaf is given to whoever serves it.

pub mod certificate;
pub mod clock;
pub mod cluster;
pub mod issue;
pub mod keeper;
pub mod metrics;
pub mod state;
pub mod steps;

pub use clock::{Clock, Reading};
pub use keeper::{Keeper, Settings};
pub use metrics::Metrics;
pub use steps::Timing;
