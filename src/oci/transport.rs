//! HTTP requests with a timeout and a maximum response size.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::header::{ACCEPT, AUTHORIZATION, HeaderMap, LOCATION, USER_AGENT};
use hyper::{Request, StatusCode, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls_pki_types::CertificateDer;
use tokio::time::timeout;

use super::Error;
use crate::https::{self, why};

/// Timeout for connecting to a registry or token service.
const CONNECT: Duration = Duration::from_secs(5);
/// The maximum number of idle connections per registry that are kept for later requests.
const IDLE: usize = 8;

/// An HTTP client for registries, with a timeout for each request.
pub(super) struct Transport {
    client: HttpClient<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    within: Duration,
}

/// A GET request to a registry or token service.
pub(super) struct Ask<'a> {
    pub(super) uri: Uri,
    pub(super) accept: &'a str,
    pub(super) authorization: Option<&'a str>,
    /// The maximum size of the response body in bytes.
    pub(super) largest: usize,
}

/// A complete HTTP response.
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Transport {
    /// Creates a client that trusts the certificate authorities of the system and `authorities`. `within` is the
    /// timeout of each request.
    pub(super) fn new(authorities: &[CertificateDer<'static>], within: Duration) -> Result<Self, rustls::Error> {
        let client = HttpClient::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(IDLE)
            .build(https::connector(authorities, CONNECT)?);
        Ok(Self { client, within })
    }

    /// Sends a request, and returns the complete response. Fails if the host cannot be reached, if the response is too
    /// large, or if it does not arrive within the timeout.
    pub(super) async fn send(&self, ask: &Ask<'_>) -> Result<Reply, Error> {
        let host = host(&ask.uri);
        match timeout(self.within, self.exchange(ask, &host)).await {
            Ok(reply) => reply,
            Err(_) => Err(Error::Slow { host, within: self.within }),
        }
    }

    async fn exchange(&self, ask: &Ask<'_>, host: &str) -> Result<Reply, Error> {
        let wrong = |what: String| Error::Wrong { host: host.to_owned(), what };
        let request = || ask.request().map_err(|error| wrong(error.to_string()));
        let answer = match self.client.request(request()?).await {
            // The server may have closed an idle connection: retries once with a new one.
            Err(error) if !error.is_connect() => self.client.request(request()?).await,
            answer => answer,
        };
        let answer = answer.map_err(|error| Error::Unreachable { host: host.to_owned(), why: why(&error) })?;
        let (parts, body) = answer.into_parts();
        let body = Limited::new(body, ask.largest).collect().await;
        let body = body.map_err(|error| wrong(format!("{error} ({} bytes are read at most)", ask.largest)))?;
        Ok(Reply { status: parts.status, headers: parts.headers, body: body.to_bytes() })
    }
}

impl Ask<'_> {
    fn request(&self) -> Result<Request<Empty<Bytes>>, hyper::http::Error> {
        let mut request = Request::get(self.uri.clone())
            .header(USER_AGENT, concat!("portcullis/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, self.accept);
        if let Some(authorization) = self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        request.body(Empty::new())
    }
}

/// Returns the host of a URL, with the port if the URL contains one.
pub(super) fn host(uri: &Uri) -> String {
    uri.authority().map(ToString::to_string).unwrap_or_default()
}

impl Reply {
    /// Returns the target of a redirect, resolved against the request's `uri`; `None` if the response is not a
    /// redirect.
    pub(super) fn redirect(&self, uri: &Uri) -> Option<Uri> {
        if !self.status.is_redirection() {
            return None;
        }
        let location = self.headers.get(LOCATION)?.to_str().ok()?;
        let target: Uri = location.parse().ok()?;
        if target.authority().is_some() {
            return Some(target);
        }
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = target.into_parts().path_and_query;
        Uri::from_parts(parts).ok()
    }
}
