//! Creates the client of the API server.
//!
//! It behaves like the default client of the crate kube, but its connections have smaller buffers. kube has no setting
//! for the size of the buffers.

use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use kube::client::retry::RetryPolicy;
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::{Client, Config, Error};
use tower::retry::RetryLayer;
use tower::{BoxError, ServiceBuilder};

use crate::catalog::Freshness;

/// Maximum size of the read buffer of a connection, in bytes. A connection keeps its buffer until it is closed. With
/// the default of hyper, each connection that received a long list would keep 408 KiB.
const MAX_READ_BUFFER_BYTES: usize = 32 * 1024;

/// Returns a client for the API server that `config` describes. It records the time of the last event of each watch in
/// `freshness`.
///
/// # Errors
/// If the credentials, certificates or headers in `config` are invalid, or if it has a proxy, because Portcullis does
/// not support proxies to the API server.
pub(super) fn client(config: Config, freshness: &Freshness) -> Result<Client, Error> {
    if let Some(proxy_url) = config.proxy_url.clone() {
        return Err(Error::ProxyProtocolUnsupported { proxy_url: Box::new(proxy_url) });
    }
    let mut connector = TimeoutConnector::new(config.rustls_https_connector()?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let mut http = legacy::Client::builder(TokioExecutor::new());
    http.http1_max_buf_size(MAX_READ_BUFFER_BYTES);
    let service = ServiceBuilder::new()
        .layer(freshness)
        .layer(config.base_uri_layer())
        .option_layer(config.default_retry.then(|| RetryLayer::new(RetryPolicy::server_retry())))
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http.build::<_, Body>(connector));
    Ok(ClientBuilder::new(service, config.default_namespace).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_an_error() {
        let mut config = Config::new("https://api.example.org".parse().unwrap());
        config.proxy_url = Some("http://proxy.example.org:3128".parse().unwrap());
        let error = client(config, &Freshness::default()).err().unwrap().to_string();
        assert!(error.contains("proxy.example.org"), "{error}");
    }
}
