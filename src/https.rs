//! The HTTP client for servers other than the API server: a connector, and descriptions of failures.

use std::error::Error;
use std::time::Duration;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;

use crate::cryptography;

/// Returns a connector for HTTP/1.1 with a connect timeout. It uses TLS for `https` URLs, and trusts the system's CAs
/// and the CA certificates in `authorities`.
///
/// # Errors
/// If a certificate in `authorities` is invalid.
pub(crate) fn connector(
    authorities: &[CertificateDer<'static>],
    connect_timeout: Duration,
) -> Result<HttpsConnector<HttpConnector>, rustls::Error> {
    let mut roots = RootCertStore::empty();
    // Errors are ignored: without system CAs, `authorities` are still trusted.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for authority in authorities {
        roots.add(authority.clone())?;
    }
    let config = ClientConfig::builder_with_provider(cryptography::provider()).with_safe_default_protocol_versions()?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_connect_timeout(Some(connect_timeout));
    let https = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1();
    Ok(https.wrap_connector(http))
}

/// Returns the message of the innermost cause of an error. If the message contains the words "connection refused",
/// returns another message, because Landscaper would treat these words in a response as an outage of the webhook.
pub(crate) fn why(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let text = cause.to_string();
    if text.to_ascii_lowercase().contains("connection refused") {
        "nothing listens on this port".to_owned()
    } else {
        text
    }
}
