//! HTTP and TLS as a client, of whatever is not the API server: one connector, and one way to say why it failed.

use std::error::Error;
use std::time::Duration;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;

use crate::cryptography;

/// Connects over HTTP/1.1, with TLS where the address begins with `https`, and gives up after `patience`. Trusts the
/// system's authorities and `authorities`.
///
/// # Errors
/// When an authority is no certificate.
pub(crate) fn connector(
    authorities: &[CertificateDer<'static>],
    patience: Duration,
) -> Result<HttpsConnector<HttpConnector>, rustls::Error> {
    let mut roots = RootCertStore::empty();
    // A system without authorities still has those that are given.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for authority in authorities {
        roots.add(authority.clone())?;
    }
    let config = ClientConfig::builder_with_provider(cryptography::provider()).with_safe_default_protocol_versions()?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_connect_timeout(Some(patience));
    let https = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1();
    Ok(https.wrap_connector(http))
}

/// The innermost cause, which says most; never in words that others take for an outage of a webhook.
pub(crate) fn why(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let text = cause.to_string();
    if text.to_ascii_lowercase().contains("connection refused") { "nobody listens there".to_owned() } else { text }
}
