//! Fetches an archive from an allowed host, and checks its digest. Uses plain HTTP, follows no redirects, and sends no
//! credentials. Size and time are limited.
//!
//! Source of the protocol: fluxcd/pkg's `http/fetch/archive_fetcher.go`. Unlike that code, this module does not retry a
//! failed fetch.

use std::fmt::Display;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, HOST, LOCATION, USER_AGENT};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use ring::digest::{Algorithm, Context, SHA256, SHA384, SHA512};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::Limits;
use crate::kustomize::delivery::Artifact;
use crate::kustomize::tree::ArchiveError;

/// The hosts of Flux's own controllers, in Flux's default namespace.
pub const OWN_HOSTS: [&str; 2] = ["source-controller.flux-system", "source-watcher.flux-system"];
/// The suffixes of a Service's host name after its name and namespace.
const SUFFIXES: [&str; 4] = ["", ".svc", ".svc.cluster.local", ".svc.cluster.local."];
/// The port of plain HTTP.
const HTTP: u16 = 80;

/// The reason why an artifact was not fetched. The error message is a clause, such as `it could not be unpacked`.
/// Callers append it to their own message.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The URL is invalid, contains a user name, or does not begin with `http://`.
    #[error("{0:?} is not an http:// URL")]
    Url(String),
    /// The host is neither one of Flux's own hosts nor a configured host.
    #[error("the host {0} is not in the list of allowed artifact hosts")]
    Host(String),
    /// The digest has an unknown algorithm or format.
    #[error("{0:?} is not a sha256, sha384 or sha512 digest")]
    Digest(String),
    /// The host of the artifact does not answer. Contains the host.
    #[error("{0} does not answer")]
    Unreachable(String),
    /// The host did not send the archive within the timeout. Contains the host and the timeout.
    #[error("{0} did not send the archive within {1:?}")]
    Slow(String, Duration),
    /// The connection to the host of the artifact was interrupted. Contains the host and the error.
    #[error("the connection to {0} was interrupted: {1}")]
    Broken(String, String),
    /// The status of the response is neither 200 nor a redirect. Contains the host and the status.
    #[error("{0} answered {1}")]
    Status(String, StatusCode),
    /// The response is a redirect. Contains the host.
    #[error("{0} answered with a redirect, which is not followed")]
    Redirect(String),
    /// The archive is larger than this number of bytes.
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    /// The digest of the archive differs from the digest in the source's status.
    #[error("its digest is {found}, not {wanted}")]
    Mismatch {
        /// The digest of the archive.
        found: String,
        /// The digest in the source's status.
        wanted: String,
    },
    /// The archive is invalid or exceeds a limit.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// Unpacking the archive panicked.
    #[error("it could not be unpacked")]
    Unpacking,
}

/// Returns whether artifacts may be fetched from `host` and `port`. This is allowed for Flux's own hosts on port 80,
/// and for the hosts in `configured`. An entry of `configured` contains the port if it is not 80, such as
/// `minio.tools:9000`.
pub fn is_allowed(host: &str, port: u16, configured: &[String]) -> bool {
    let own = || {
        let suffix = OWN_HOSTS.iter().find_map(|own| host.strip_prefix(own));
        port == HTTP && suffix.is_some_and(|suffix| SUFFIXES.contains(&suffix))
    };
    let named = |entry: &String| match entry.rsplit_once(':') {
        Some((name, number)) => is_same_host(name, host) && number.parse() == Ok(port),
        None => is_same_host(entry, host) && port == HTTP,
    };
    own() || configured.iter().any(named)
}

/// Returns whether two host names are equal, ignoring case and a trailing dot.
fn is_same_host(one: &str, other: &str) -> bool {
    one.trim_end_matches('.').eq_ignore_ascii_case(other.trim_end_matches('.'))
}

/// The parsed URL and digest of an artifact to fetch.
#[derive(Debug, Clone)]
pub(super) struct Target {
    host: String,
    port: u16,
    path: String,
    digest: Digest,
}

impl Target {
    /// Parses the URL and digest of an artifact. Checks that the host in the URL is allowed.
    pub(super) fn of(artifact: &Artifact, hosts: &[String]) -> Result<Self, FetchError> {
        let target = Self::of_any_host(artifact)?;
        match is_allowed(&target.host, target.port, hosts) {
            true => Ok(target),
            false => Err(FetchError::Host(target.authority())),
        }
    }

    /// Parses the URL and digest of an artifact, without checking the host in the URL. Commands use this function,
    /// because their user chooses the artifact and so trusts its host.
    pub(super) fn of_any_host(artifact: &Artifact) -> Result<Self, FetchError> {
        let bad_url = || FetchError::Url(artifact.url.chars().take(200).collect());
        let uri: Uri = artifact.url.parse().map_err(|_| bad_url())?;
        let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
        if uri.scheme_str() != Some("http") || has_user {
            return Err(bad_url());
        }
        let (host, port) = (uri.host().ok_or_else(bad_url)?.to_owned(), uri.port_u16().unwrap_or(HTTP));
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Self { host, port, path, digest: Digest::of(&artifact.digest)? })
    }

    /// Returns the host of the artifact's URL, followed by `:` and the port unless the port is 80.
    pub(super) fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        if *port == HTTP { host.clone() } else { format!("{host}:{port}") }
    }
}

/// The digest that an archive must have.
#[derive(Debug, Clone)]
pub(super) struct Digest {
    algorithm: &'static Algorithm,
    text: String,
}

impl Digest {
    /// Parses a digest: `sha256:`, `sha384:` or `sha512:` and the hexadecimal digits.
    pub(super) fn of(text: &str) -> Result<Self, FetchError> {
        let algorithm = algorithm(text).ok_or_else(|| FetchError::Digest(text.to_owned()))?;
        Ok(Self { algorithm, text: text.to_owned() })
    }
}

fn algorithm(digest: &str) -> Option<&'static Algorithm> {
    let (name, hexadecimal) = digest.split_once(':')?;
    let algorithm = match name {
        "sha256" => &SHA256,
        "sha384" => &SHA384,
        "sha512" => &SHA512,
        _ => return None,
    };
    let fits = hexadecimal.len() == 2 * algorithm.output_len() && hexadecimal.bytes().all(|c| c.is_ascii_hexdigit());
    fits.then_some(algorithm)
}

/// Downloads an archive, and checks its digest. Before reading the response body, acquires permits of the semaphore
/// `arriving`, one for each byte that the body can have. So the semaphore limits the total size of archives in memory.
///
/// Returns the archive and the permits. The caller drops the permits when it no longer needs the archive.
pub(super) async fn fetch<'a>(
    target: &Target,
    limits: &Limits,
    arriving: &'a Semaphore,
) -> Result<(Vec<u8>, SemaphorePermit<'a>), FetchError> {
    let slow = |_| FetchError::Slow(target.authority(), limits.fetch);
    timeout(limits.fetch, fetch_without_deadline(target, limits, arriving)).await.map_err(slow)?
}

async fn fetch_without_deadline<'a>(
    target: &Target,
    limits: &Limits,
    arriving: &'a Semaphore,
) -> Result<(Vec<u8>, SemaphorePermit<'a>), FetchError> {
    let answer = ask(target, limits).await?;
    let body = answer.into_body();
    // The Content-Length is an upper bound: no more bytes are read.
    let most = body.size_hint().upper().unwrap_or(limits.packed);
    if most > limits.packed {
        return Err(FetchError::TooLarge(limits.packed));
    }
    let permits = u32::try_from(most).unwrap_or(u32::MAX);
    let room = arriving.acquire_many(permits).await.map_err(|_| FetchError::Unpacking)?;
    let packed = read(&target.authority(), &target.digest, body, most).await?;
    Ok((packed, room))
}

/// Sends the request, and returns the response. The body of the response is not read yet.
async fn ask(target: &Target, limits: &Limits) -> Result<Response<Incoming>, FetchError> {
    let authority = target.authority();
    let unreachable = || FetchError::Unreachable(authority.clone());
    let broken = |error: hyper::Error| FetchError::Broken(authority.clone(), error.to_string());
    let connect = TcpStream::connect((target.host.trim_end_matches('.'), target.port));
    let stream = timeout(limits.connect, connect).await.map_err(|_| unreachable())?.map_err(|_| unreachable())?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // The task ends when the sender and the body are dropped.
    tokio::spawn(connection);
    let request = Request::get(&target.path)
        .header(HOST, &authority)
        .header(USER_AGENT, concat!("portcullis/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "application/gzip, application/octet-stream")
        .body(Empty::<Bytes>::new())
        .map_err(|_| FetchError::Url(target.path.clone()))?;
    let answer = sender.send_request(request).await.map_err(broken)?;
    match answer.status() {
        StatusCode::OK => Ok(answer),
        status if status.is_redirection() || answer.headers().contains_key(LOCATION) => {
            Err(FetchError::Redirect(authority))
        }
        status => Err(FetchError::Status(authority, status)),
    }
}

/// Reads an archive of at most `most` bytes from a response body, and checks its digest. `host` is the host that sent
/// the response.
pub(super) async fn read<B>(host: &str, digest: &Digest, body: B, most: u64) -> Result<Vec<u8>, FetchError>
where
    B: Body<Data = Bytes>,
    B::Error: Display,
{
    let mut body = pin!(body);
    let mut hash = Context::new(digest.algorithm);
    let mut packed = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| FetchError::Broken(host.to_owned(), error.to_string()))?;
        let Ok(data) = frame.into_data() else { continue };
        if (packed.len() + data.len()) as u64 > most {
            return Err(FetchError::TooLarge(most));
        }
        hash.update(&data);
        packed.extend_from_slice(&data);
    }
    let name = digest.text.split_once(':').map_or("", |(name, _)| name);
    let bytes: String = hash.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let found = format!("{name}:{bytes}");
    if found.eq_ignore_ascii_case(&digest.text) {
        return Ok(packed);
    }
    Err(FetchError::Mismatch { found, wanted: digest.text.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str, hosts: &[&str]) -> Result<Target, String> {
        let hosts: Vec<_> = hosts.iter().map(|&host| host.to_owned()).collect();
        let artifact = Artifact { url: url.into(), digest: format!("sha256:{}", "0".repeat(64)), revision: "r".into() };
        Target::of(&artifact, &hosts).map_err(|error| error.to_string())
    }

    #[test]
    fn rejects_hosts_that_are_not_allowed() {
        let own = "http://source-controller.flux-system.svc.cluster.local./gitrepository/a/b/c.tar.gz";
        assert_eq!(target(own, &[]).unwrap().path, "/gitrepository/a/b/c.tar.gz");
        target("http://minio.tools.svc:9000/x", &["minio.tools.svc:9000"]).unwrap();
        for url in [
            "http://source-controller.flux-system.evil.org/x",
            "http://source-controller.other.svc/x",
            "http://source-controller.flux-system:8080/x",
            "http://source-controller.flux-system@evil.org/x",
            "http://user:pass@source-controller.flux-system/x",
            "https://source-controller.flux-system/x",
            "file:///etc/passwd",
            "http://169.254.169.254/latest/meta-data",
            "http://minio.tools.svc/x",
            "",
        ] {
            assert!(target(url, &["minio.tools.svc:9000"]).is_err(), "{url}");
        }
    }

    #[test]
    fn rejects_digests_that_cannot_be_checked() {
        assert!(algorithm(&format!("sha512:{}", "A".repeat(128))).is_some());
        for digest in ["", "sha256", "sha256:", "sha256:zz", "md5:00", "blake3:00", &"0".repeat(64)] {
            assert!(algorithm(digest).is_none(), "{digest}");
        }
    }
}
