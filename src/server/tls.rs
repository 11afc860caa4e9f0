//! How TLS is spoken.

use std::sync::Arc;

use rustls::server::NoServerSessionStorage;
use rustls::{ServerConfig, SupportedProtocolVersion, version};

use super::certificates::Certificates;
use super::clients::Verifier;
use crate::cryptography::provider;

/// The oldest TLS version that is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Floor {
    /// TLS 1.2, and 1.3 where the client has it.
    #[default]
    Tls12,
    /// TLS 1.3 alone.
    Tls13,
}

static ALL: &[&SupportedProtocolVersion] = &[&version::TLS13, &version::TLS12];
static NEWEST: &[&SupportedProtocolVersion] = &[&version::TLS13];

impl Floor {
    fn versions(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            Self::Tls12 => ALL,
            Self::Tls13 => NEWEST,
        }
    }
}

/// The server's side of TLS: HTTP/1.1 (C1), and nothing kept for resumption, which the API server never asks for (C2b).
///
/// # Errors
/// When ring cannot speak the versions.
pub fn server_config(certificates: Arc<Certificates>, floor: Floor) -> Result<ServerConfig, rustls::Error> {
    server_config_for(certificates, floor, None)
}

/// The same, where `clients` looks at the certificates of clients.
pub(super) fn server_config_for(
    certificates: Arc<Certificates>,
    floor: Floor,
    clients: Option<Verifier>,
) -> Result<ServerConfig, rustls::Error> {
    let builder = ServerConfig::builder_with_provider(provider()).with_protocol_versions(floor.versions())?;
    let builder = match clients {
        Some(verifier) => builder.with_client_cert_verifier(Arc::new(verifier)),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(certificates);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}
