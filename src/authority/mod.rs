//! Self-managed certificates of the webhook server. All replicas share one CA, which is stored in a Secret. Each
//! replica signs its own leaf certificate with this CA. The caBundles of the webhook configurations contain the CA, so
//! API servers trust the leaf certificates.
//!
//! The module has these parts:
//!
//! - `keeper` is the control loop of a replica. It reads the Secret and the caBundles, renews the leaf certificate, and
//!   takes the steps that `steps` computes, one after the other.
//! - `steps` computes the next step, such as creating the next CA, from the Secret, the caBundles and the time.
//!   [`provided`] does the same for replicas whose certificate is issued elsewhere, for example by cert-manager. Both
//!   are pure functions.
//! - `state` parses and writes the content of the Secret.
//! - `cluster` reads, writes and watches the Secret and the webhook configurations.
//! - `issue` creates CAs and leaf certificates.
//!
//! There is no leader. All replicas read the same objects, so they compute the same step. The write of each replica
//! contains the resourceVersion that the replica has read, so only one write succeeds. The other replicas read again.
//! If a replica dies between two steps, another one continues.
//!
//! This module does not depend on the server. The server passes a callback, which receives each new leaf certificate.

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
