//! Implements gix's transport for git's HTTP protocol with our HTTP client.
//!
//! gix includes transports that use curl or reqwest. They would add another HTTP client and TLS library.

use std::any::Any;
use std::io::{self, BufRead, Cursor, Read, Write};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use gix_transport::client::AuthenticationRequired;
use gix_transport::client::blocking_io::http::{GetResponse, Http, PostBodyDataKind, PostResponse};
use hyper::header::WWW_AUTHENTICATE;
use hyper::{Method, StatusCode};

use super::client::{Client, Response, headers_for};

/// Maximum size of a git server's response, in bytes. The largest response is the pack of one commit.
const MAX_PACK: u64 = 512 << 20;

/// The HTTP connection to one git server.
pub(super) struct GitHttp {
    client: Arc<Client>,
    /// The URL of the repository after a redirect; `None` if there was no redirect. All requests of the connection
    /// share this URL.
    redirected: Arc<Mutex<Option<String>>>,
}

impl GitHttp {
    /// Creates a connection that sends its requests with `client`.
    pub(super) fn new(client: Arc<Client>) -> Self {
        Self { client, redirected: Arc::default() }
    }

    fn exchange(&self, method: Method, url: &str, base: &str, headers: Vec<String>) -> Arc<Exchange> {
        Arc::new(Exchange {
            client: Arc::clone(&self.client),
            redirected: Arc::clone(&self.redirected),
            method,
            base: base.to_owned(),
            tail: url.strip_prefix(base).unwrap_or_default().to_owned(),
            headers,
            body: Mutex::default(),
            answer: OnceLock::new(),
        })
    }
}

impl Http for GitHttp {
    type Headers = Part;
    type ResponseBody = Part;
    type PostBody = Body;

    fn get(
        &mut self,
        url: &str,
        base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> gix::error::Result<GetResponse<Part, Part>> {
        let headers = headers.into_iter().map(|header| header.as_ref().to_owned()).collect();
        let exchange = self.exchange(Method::GET, url, base_url, headers);
        Ok(GetResponse { headers: Part::headers(&exchange), body: Part::body(&exchange) })
    }

    fn post(
        &mut self,
        url: &str,
        base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
        _body: PostBodyDataKind,
    ) -> gix::error::Result<PostResponse<Part, Part, Body>> {
        let headers = headers.into_iter().map(|header| header.as_ref().to_owned()).collect();
        let exchange = self.exchange(Method::POST, url, base_url, headers);
        let post_body = Body { exchange: Arc::clone(&exchange) };
        Ok(PostResponse { post_body, headers: Part::headers(&exchange), body: Part::body(&exchange) })
    }

    fn configure(&mut self, _config: &dyn Any) -> gix::error::Result<()> {
        Ok(())
    }

    fn redirected_base_url(&self) -> Option<String> {
        self.redirected.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A request to a git server. The request is sent only when its response is first read.
struct Exchange {
    client: Arc<Client>,
    redirected: Arc<Mutex<Option<String>>>,
    method: Method,
    /// The URL of the repository, such as `https://example.com/repo.git`. The URL of the request is `base` followed by
    /// `tail`.
    base: String,
    tail: String,
    headers: Vec<String>,
    body: Mutex<Vec<u8>>,
    answer: OnceLock<Result<Response, String>>,
}

impl Exchange {
    fn answer(&self) -> io::Result<&Response> {
        let answer = self.answer.get_or_init(|| self.send()).as_ref().map_err(|why| io::Error::other(why.clone()))?;
        match answer.status {
            status if status.is_success() => Ok(answer),
            StatusCode::UNAUTHORIZED => {
                let values = answer.headers.get_all(WWW_AUTHENTICATE).iter();
                let www_authenticate = values.map(|value| value.as_bytes().into()).collect();
                Err(io::Error::new(io::ErrorKind::PermissionDenied, AuthenticationRequired { www_authenticate }))
            }
            status => Err(io::Error::other(format!("the server answers {status}"))),
        }
    }

    fn send(&self) -> Result<Response, String> {
        let mut redirected = self.redirected.lock().unwrap_or_else(PoisonError::into_inner);
        let url = format!("{}{}", redirected.as_deref().unwrap_or(&self.base), self.tail);
        let body = std::mem::take(&mut *self.body.lock().unwrap_or_else(PoisonError::into_inner));
        let headers = headers_for(&url, &self.base, &self.headers);
        if self.method == Method::POST {
            return self.client.send(Method::POST, &url, &headers, Bytes::from(body), MAX_PACK);
        }
        let answer = self.client.get(&url, &headers, MAX_PACK)?;
        if answer.url != url {
            let base = answer.url.strip_suffix(&self.tail);
            *redirected = Some(base.ok_or_else(|| format!("it redirects to {}", answer.url))?.to_owned());
        }
        Ok(answer)
    }
}

/// The body of a request, which is collected before the request is sent.
pub(super) struct Body {
    exchange: Arc<Exchange>,
}

impl Write for Body {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.exchange.body.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A reader of one part of an HTTP response: the headers, one on each line, or the body.
pub(super) struct Part {
    exchange: Arc<Exchange>,
    is_body: bool,
    content: Option<Cursor<Bytes>>,
}

impl Part {
    fn headers(exchange: &Arc<Exchange>) -> Self {
        Self { exchange: Arc::clone(exchange), is_body: false, content: None }
    }

    fn body(exchange: &Arc<Exchange>) -> Self {
        Self { exchange: Arc::clone(exchange), is_body: true, content: None }
    }

    fn content(&mut self) -> io::Result<&mut Cursor<Bytes>> {
        if self.content.is_none() {
            let answer = self.exchange.answer()?;
            let bytes = if self.is_body { answer.body.clone() } else { lines(answer).into() };
            self.content = Some(Cursor::new(bytes));
        }
        self.content.as_mut().ok_or_else(|| io::Error::other("no content"))
    }
}

impl Read for Part {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.content()?.read(into)
    }
}

impl BufRead for Part {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.content()?.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        if let Some(content) = &mut self.content {
            content.consume(amount);
        }
    }
}

/// Returns the headers of a response, one on each line.
fn lines(answer: &Response) -> Vec<u8> {
    let line = |(name, value): (&hyper::header::HeaderName, &hyper::header::HeaderValue)| {
        [name.as_str().as_bytes(), b":", value.as_bytes(), b"\n"].concat()
    };
    answer.headers.iter().flat_map(line).collect()
}
