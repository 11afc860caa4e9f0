//! An HTTP client for files and for git's HTTP protocol, with limits.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{CONTENT_TYPE, HeaderMap, LOCATION};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::runtime::Runtime;

use crate::https;

/// Maximum time of one request with its answer.
const DEADLINE: Duration = Duration::from_secs(120);
/// Maximum time of establishing a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Maximum number of redirects, as in Go's client.
const MAX_REDIRECTS: usize = 10;

/// A client that blocks the thread.
pub(super) struct Client {
    runtime: Runtime,
    client: hyper_util::client::legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// The URL that answered, after redirects.
    pub(super) url: String,
}

impl Client {
    /// Creates a client.
    pub(super) fn new() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let connector = https::connector(&[], CONNECT).map_err(io::Error::other)?;
        let client = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { runtime, client })
    }

    /// Fetches a file.
    ///
    /// # Errors
    ///
    /// If the server does not have it, or answers with a page for people.
    pub(super) fn file(&self, url: &str, most: u64) -> Result<Bytes, String> {
        let answer = self.get(url, &[], most)?;
        let is_page = |kind: &str| kind.starts_with("text/html");
        if !answer.status.is_success() {
            return Err(format!("the server answers {}", answer.status));
        }
        if answer.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).is_some_and(is_page) {
            return Err("the server answers with a web page".to_owned());
        }
        Ok(answer.body)
    }

    /// Sends a GET request and follows redirects, but not from `https` to `http`.
    ///
    /// # Errors
    ///
    /// If there is no answer in time, or it is too large.
    pub(super) fn get(&self, url: &str, headers: &[String], most: u64) -> Result<Response, String> {
        let mut url = url.to_owned();
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.send(Method::GET, &url, headers, Bytes::new(), most)?;
            let location = answer.headers.get(LOCATION).and_then(|location| location.to_str().ok());
            let Some(location) = location.filter(|_| answer.status.is_redirection()) else { return Ok(answer) };
            let next = joined(&url, location);
            if url.starts_with("https:") && !next.starts_with("https:") {
                return Err(format!("it redirects to {next}, which is not encrypted"));
            }
            url = next;
        }
        Err(format!("more than {MAX_REDIRECTS} redirects"))
    }

    /// Sends a request, without following redirects.
    ///
    /// # Errors
    ///
    /// See [`Client::get`].
    pub(super) fn send(
        &self,
        method: Method,
        url: &str,
        headers: &[String],
        body: Bytes,
        most: u64,
    ) -> Result<Response, String> {
        let uri: Uri = url.parse().map_err(|error| format!("{url}: {error}"))?;
        let mut request = Request::builder().method(method).uri(uri);
        for header in headers {
            let (name, value) = header.split_once(':').unwrap_or((header, ""));
            request = request.header(name.trim(), value.trim());
        }
        let request = request.body(Full::new(body)).map_err(|error| error.to_string())?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let exchange = async {
            let answer = self.client.request(request).await.map_err(|error| https::why(&error))?;
            let (parts, body) = answer.into_parts();
            let body = Limited::new(body, most).collect().await.map_err(|error| https::why(&*error))?;
            let url = url.to_owned();
            Ok(Response { status: parts.status, headers: parts.headers, body: body.to_bytes(), url })
        };
        let in_time = async { tokio::time::timeout(DEADLINE, exchange).await };
        self.runtime.block_on(in_time).map_err(|_| format!("no answer within {} s", DEADLINE.as_secs()))?
    }
}

/// Returns the URL that a redirect names.
fn joined(url: &str, location: &str) -> String {
    if location.contains("://") {
        return location.to_owned();
    }
    let scheme_end = url.find("://").map_or(0, |at| at + 3);
    let host_end = url[scheme_end..].find('/').map_or(url.len(), |at| scheme_end + at);
    match location.strip_prefix("//") {
        Some(_) => format!("{}{location}", &url[..scheme_end.saturating_sub(2)]),
        None if location.starts_with('/') => format!("{}{location}", &url[..host_end]),
        None => format!("{}/{location}", url.rsplit_once('/').map_or(url, |(folder, _)| folder)),
    }
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn redirects_may_be_relative() {
        let url = "https://a.example/b/c?d";
        let to = |location: &str| joined(url, location);
        assert_eq!(to("http://x/y"), "http://x/y");
        assert_eq!(to("//x/y"), "https://x/y");
        assert_eq!(to("/y"), "https://a.example/y");
        assert_eq!(to("y"), "https://a.example/b/y");
    }
}
