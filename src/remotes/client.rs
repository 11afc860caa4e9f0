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

/// Timeout of one request, including its response.
const DEADLINE: Duration = Duration::from_secs(120);
/// Timeout for establishing a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Maximum number of redirects, as in Go's client.
const MAX_REDIRECTS: usize = 10;

/// An HTTP client that blocks the calling thread.
pub(super) struct Client {
    runtime: Runtime,
    client: hyper_util::client::legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

/// A complete HTTP response.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// The URL of the response, after redirects.
    pub(super) url: String,
}

impl Client {
    /// Creates a client that trusts the system's CAs, with a Tokio runtime of its own.
    pub(super) fn new() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let connector = https::connector(&[], CONNECT).map_err(io::Error::other)?;
        let client = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { runtime, client })
    }

    /// Fetches a file of at most `most` bytes from a URL, and follows redirects.
    ///
    /// # Errors
    ///
    /// Fails if the request fails (see [`Client::get`]), if the status of the response is not a success, or if the
    /// response is an HTML page.
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

    /// Sends a GET request and follows redirects. Sends credentials, which are the headers `Authorization` and
    /// `Cookie`, only to the scheme and server of `url`. Returns the final response, whatever its status.
    ///
    /// # Errors
    ///
    /// - The URL or a header is invalid.
    /// - The server cannot be reached.
    /// - The complete response does not arrive within the timeout.
    /// - The body of a response has more than `most` bytes.
    /// - There are more than [`MAX_REDIRECTS`] redirects.
    /// - The server redirects from `https` to `http`.
    pub(super) fn get(&self, url: &str, headers: &[String], most: u64) -> Result<Response, String> {
        let first = url;
        let mut url = url.to_owned();
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.send(Method::GET, &url, &headers_for(&url, first, headers), Bytes::new(), most)?;
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

    /// Sends a request, without following redirects. Returns the response, whatever its status.
    ///
    /// # Errors
    ///
    /// Fails if the URL or a header is invalid, if the server cannot be reached, if the complete response does not
    /// arrive within the timeout, or if its body has more than `most` bytes.
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

/// Returns the headers that may be sent to `url`. `headers` are the headers of a request that was first sent to
/// `intended`. If both URLs have the same scheme and server, returns all headers. Otherwise, returns only the headers
/// without credentials.
pub(super) fn headers_for(url: &str, intended: &str, headers: &[String]) -> Vec<String> {
    let is_same = url[..server_end(url)] == intended[..server_end(intended)];
    let is_secret = |header: &str| {
        let name = header.split(':').next().unwrap_or_default().trim();
        ["authorization", "cookie"].iter().any(|secret| name.eq_ignore_ascii_case(secret))
    };
    headers.iter().filter(|header| is_same || !is_secret(header)).cloned().collect()
}

/// Returns the length of the scheme and server at the start of a URL.
fn server_end(url: &str) -> usize {
    let scheme_end = url.find("://").map_or(0, |at| at + 3);
    url[scheme_end..].find(['/', '?', '#']).map_or(url.len(), |at| scheme_end + at)
}

/// Returns the target of a redirect. Resolves its `location` against the `url` of the request.
fn joined(url: &str, location: &str) -> String {
    if location.contains("://") {
        return location.to_owned();
    }
    let scheme_end = url.find("://").map_or(0, |at| at + 3);
    let host_end = server_end(url);
    match location.strip_prefix("//") {
        Some(_) => format!("{}{location}", &url[..scheme_end.saturating_sub(2)]),
        None if location.starts_with('/') => format!("{}{location}", &url[..host_end]),
        None => format!("{}/{location}", url.rsplit_once('/').map_or(url, |(folder, _)| folder)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::{Client, MAX_REDIRECTS, headers_for, joined};

    /// Starts a server that sends the same response to every request, and returns its address.
    fn server(answer: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    request.push(byte[0]);
                }
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        address
    }

    #[test]
    fn refuses_answers_beyond_the_limit() {
        let url = server("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n12345");
        let client = Client::new().unwrap();
        assert_eq!(client.file(&url, 5).unwrap(), "12345");
        assert_eq!(client.file(&url, 4).unwrap_err(), "length limit exceeded");
    }

    #[test]
    fn follows_a_limited_number_of_redirects() {
        let url = server("HTTP/1.1 302 Found\r\nLocation: /a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        let error = Client::new().unwrap().file(&url, 5).unwrap_err();
        assert_eq!(error, format!("more than {MAX_REDIRECTS} redirects"));
    }

    #[test]
    fn web_pages_are_not_files() {
        let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        assert_eq!(Client::new().unwrap().file(&server(page), 5).unwrap_err(), "the server answers with a web page");
    }

    #[test]
    fn credentials_stay_with_their_server() {
        let headers = ["Authorization: Basic YTpi".to_owned(), "Accept: */*".to_owned()];
        let sent = |url: &str| headers_for(url, "https://a.example/b", &headers).len();
        assert_eq!(sent("https://a.example/c"), 2);
        for other in ["https://a.example.org/b", "https://b.example/b", "http://a.example/b", "https://a.example:444/b"]
        {
            assert_eq!(sent(other), 1, "{other}");
        }
    }

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
