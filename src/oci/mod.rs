//! Reading from OCI registries: manifests, blobs and tags, within bounds. It knows nothing of what is in them.
//!
//! Source: the Distribution Specification of the Open Container Initiative, and the token authentication of the
//! Distribution project. Everything that comes back is held against its digest. Credentials and tokens go to the host
//! they are for and to nobody else, whatever a registry asks for or redirects to.

mod challenge;
mod client;
mod credentials;
pub mod digest;
mod mirror;
mod repository;
mod transport;

pub use client::{Blob, Client, Manifest, Options};
pub use credentials::{Credentials, Keyring, KeyringError};
pub use mirror::Mirror;
pub use repository::{Repository, RepositoryError};

use std::time::Duration;

/// Why something could not be read from a registry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The registry does not have it.
    #[error("{host} does not have it")]
    NotFound {
        /// The registry.
        host: String,
    },
    /// The registry wants other credentials.
    #[error("{host} refuses to show it{hint}")]
    Denied {
        /// The registry.
        host: String,
        /// What was sent.
        hint: &'static str,
    },
    /// The registry is not there, or does not prove that it is itself.
    #[error("{host} cannot be reached: {why}")]
    Unreachable {
        /// The registry.
        host: String,
        /// What happened.
        why: String,
    },
    /// The registry is too slow.
    #[error("{host} did not answer within {within:?}")]
    Slow {
        /// The registry.
        host: String,
        /// How long it had.
        within: Duration,
    },
    /// What came is not what was asked for.
    #[error("{host} sent something else: {what}")]
    Wrong {
        /// The registry.
        host: String,
        /// How it differs.
        what: String,
    },
}

impl Error {
    /// Whether the registry as a whole is the trouble, so that asking it for something else now is of no use.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Slow { .. })
    }
}
