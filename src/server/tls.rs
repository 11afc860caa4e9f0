//! The TLS configuration of the server.

use std::sync::Arc;

use rustls::server::NoServerSessionStorage;
use rustls::{ServerConfig, SupportedProtocolVersion, version};

use super::certificates::Certificates;
use super::clients::Verifier;
use crate::cryptography::provider;

/// The minimum TLS version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Floor {
    /// TLS 1.2 or later. TLS 1.3 is used if the client supports it.
    #[default]
    Tls12,
    /// TLS 1.3 only.
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

/// Returns the server's TLS configuration. It offers only HTTP/1.1, which the API server uses for webhooks. It does not
/// support session resumption, because the API server never resumes a session.
///
/// # Errors
/// If the crypto provider does not support the TLS versions that `floor` allows.
pub fn server_config(certificates: Arc<Certificates>, floor: Floor) -> Result<ServerConfig, rustls::Error> {
    server_config_for(certificates, floor, None)
}

/// Returns the server's TLS configuration. If `clients` is set, it verifies the client certificates. If it is `None`,
/// the server requests no client certificates.
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
