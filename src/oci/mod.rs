//! A client that reads manifests, blobs and tags from OCI registries. It limits the size and the time of each request,
//! and does not interpret the content.
//!
//! Source: the Distribution Specification of the Open Container Initiative, and the token authentication of the
//! Distribution project. Content is verified against its digest. Credentials of a registry are sent only to this
//! registry, and to token services in its domain. A token is sent only to the registry for which it was issued.
//! Credentials and tokens are removed from a request that is redirected to another host.

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

/// The reason why a read from a registry failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The registry does not have the content.
    #[error("{host} answered 404 Not Found")]
    NotFound {
        /// The host of the registry.
        host: String,
    },
    /// The registry denies access with these credentials.
    #[error("{host} denies access{hint}")]
    Denied {
        /// The host of the registry.
        host: String,
        /// A hint about the cause, such as missing credentials for the registry. It is appended to the message.
        hint: &'static str,
    },
    /// The connection or the TLS handshake failed.
    #[error("{host} cannot be reached: {why}")]
    Unreachable {
        /// The host of the registry.
        host: String,
        /// The cause, from the connection or the TLS handshake.
        why: String,
    },
    /// The registry did not answer in time.
    #[error("{host} did not answer within {within:?}")]
    Slow {
        /// The host of the registry.
        host: String,
        /// The timeout of a request.
        within: Duration,
    },
    /// The registry sent an invalid response, or one that is too large.
    #[error("{host} sent an invalid response: {what}")]
    Wrong {
        /// The host of the registry.
        host: String,
        /// A description of what is wrong with the response.
        what: String,
    },
}

impl Error {
    /// Returns whether the error means that the whole registry is unavailable, so that other requests to this registry
    /// would also fail.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Slow { .. })
    }
}
