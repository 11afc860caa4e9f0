//! The client for OCI registries.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::header::WWW_AUTHENTICATE;
use hyper::{StatusCode, Uri};
use rustls_pki_types::CertificateDer;
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::challenge::{Challenge, is_trusted};
use super::transport::{Ask, Reply, Transport, host};
use super::{Credentials, Error, Repository, digest};

/// Accepted media types of manifests. Manifests of these types have a configuration and layers.
const MANIFESTS: &str =
    "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json";
/// Maximum size of a manifest, in bytes. The OCI Distribution Specification requires registries to accept manifests of
/// 4 MiB.
const MAX_MANIFEST_BYTES: usize = 4 << 20;
/// Maximum size of a tag list, in bytes. This is enough for thousands of tags.
const MAX_LIST_BYTES: usize = 1 << 20;
/// Maximum size of a token response, in bytes. A token has only a few kilobytes.
const MAX_TOKEN_BYTES: usize = 64 << 10;
/// Maximum number of redirects. A registry redirects once to its blob storage, so more redirects indicate a loop.
const REDIRECTS: usize = 5;
/// The maximum number of concurrent requests to all registries, so that a large component tree does not overload them.
const AT_ONCE: usize = 16;
/// The maximum number of cached tokens, to bound the memory of the cache. At the limit, the cache is cleared.
const TOKENS: usize = 1_000;
/// The lifetime of a token if the response of the token service has no `expires_in`. The specification defines this
/// default.
const TOKEN_LIFE: Duration = Duration::from_secs(60);
/// Safety margin before a token expires. The client no longer uses a token in this period.
const TOKEN_MARGIN: Duration = Duration::from_secs(10);

/// The options of a registry client.
#[derive(Debug, Clone)]
pub struct Options {
    /// Certificate authorities to trust in addition to those of the system.
    pub authorities: Vec<CertificateDer<'static>>,
    /// The timeout of a request, including the response body.
    pub within: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { authorities: Vec::new(), within: Duration::from_secs(10) }
    }
}

/// A client that reads manifests, blobs and tags from OCI registries.
pub struct Client {
    transport: Transport,
    tokens: Mutex<HashMap<TokenKey, (String, Instant)>>,
    permits: Semaphore,
}

/// The key of a cached token: the repository, and a hash of the credentials.
type TokenKey = (Repository, String);

/// A manifest of an OCI image or artifact.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The digest of the manifest, computed from its content.
    pub digest: String,
    /// The descriptor of the configuration blob.
    pub config: Blob,
    /// The descriptors of the layers.
    pub layers: Vec<Blob>,
}

/// A reference to content in a registry (OCI: descriptor).
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Blob {
    /// The media type of the content.
    #[serde(default)]
    pub media_type: String,
    /// The digest of the content, such as `sha256:` followed by 64 hexadecimal digits.
    pub digest: String,
    /// The size of the content in bytes; `None` if the registry does not specify it.
    #[serde(default)]
    pub size: Option<u64>,
}

#[derive(Deserialize)]
struct WireManifest {
    config: Blob,
    #[serde(default)]
    layers: Vec<Blob>,
}

#[derive(Deserialize)]
struct Tags {
    #[serde(default)]
    tags: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Token {
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    access_token: Option<String>,
    #[serde(default)]
    expires_in: Option<u64>,
}

impl Client {
    /// Creates a client with an empty token cache.
    ///
    /// # Errors
    ///
    /// Fails if a certificate in `options.authorities` is invalid.
    pub fn new(options: &Options) -> Result<Self, rustls::Error> {
        let transport = Transport::new(&options.authorities, options.within)?;
        Ok(Self { transport, tokens: Mutex::default(), permits: Semaphore::new(AT_ONCE) })
    }

    /// Fetches the manifest of a tag.
    ///
    /// # Errors
    /// Fails if the registry cannot be reached, denies access, does not have the tag, or sends an invalid response. A
    /// response is also invalid if its header contains a digest other than that of the manifest.
    pub async fn manifest(&self, from: &Repository, tag: &str, who: &Credentials) -> Result<Manifest, Error> {
        let reply = self.get(from, who, &format!("manifests/{tag}"), MANIFESTS, MAX_MANIFEST_BYTES).await?;
        let found = digest::of(&reply.body);
        let stated = reply.headers.get("docker-content-digest").and_then(|value| value.to_str().ok());
        if let Some(stated) = stated.filter(|stated| digest::is_valid(stated) && **stated != found) {
            return Err(wrong(
                from,
                format!("the manifest of {tag} has the digest {found}, the registry states {stated}"),
            ));
        }
        let wire: WireManifest = serde_json::from_slice(&reply.body)
            .map_err(|error| wrong(from, format!("{tag} does not have an artifact manifest: {error}")))?;
        Ok(Manifest { digest: found, config: wire.config, layers: wire.layers })
    }

    /// Fetches a blob of at most `largest` bytes.
    ///
    /// # Errors
    /// Fails if the registry cannot be reached, denies access, does not have the blob, or sends an invalid response.
    /// Also fails if the blob is too large, or if its content does not match the digest.
    pub async fn blob(
        &self,
        from: &Repository,
        blob: &Blob,
        largest: usize,
        who: &Credentials,
    ) -> Result<Bytes, Error> {
        if !digest::is_valid(&blob.digest) {
            return Err(wrong(from, format!("{:?} is not a digest that can be verified", blob.digest)));
        }
        if blob.size.is_some_and(|size| size > largest as u64) {
            return Err(wrong(from, format!("a blob has more than {largest} bytes")));
        }
        let reply = self.get(from, who, &format!("blobs/{}", blob.digest), "*/*", largest).await?;
        let found = digest::of(&reply.body);
        if found != blob.digest {
            return Err(wrong(from, format!("the content of {} has the digest {found}", blob.digest)));
        }
        Ok(reply.body)
    }

    /// Fetches the first page of tags of a repository.
    ///
    /// # Errors
    /// Fails if the registry cannot be reached, denies access, does not have the repository, or sends an invalid
    /// response.
    pub async fn tags(&self, from: &Repository, who: &Credentials) -> Result<Vec<String>, Error> {
        let reply = self.get(from, who, "tags/list?n=1000", "application/json", MAX_LIST_BYTES).await?;
        let tags: Tags = serde_json::from_slice(&reply.body).map_err(|error| wrong(from, error.to_string()))?;
        Ok(tags.tags.unwrap_or_default())
    }

    /// Sends a GET request for a path below a repository, such as `manifests/1.0.0`. Authenticates if the registry
    /// requires it. Returns the response if its status is 200, and an error otherwise.
    async fn get(
        &self,
        from: &Repository,
        who: &Credentials,
        what: &str,
        accept: &str,
        largest: usize,
    ) -> Result<Reply, Error> {
        // The semaphore is never closed.
        let _permit = self.permits.acquire().await.ok();
        let address = format!("{}/v2/{}/{what}", from.origin(), from.path);
        let uri: Uri = address.parse().map_err(|_| wrong(from, format!("{what:?} is not a valid path")))?;
        let mut authorization = self.cached_token(from, who);
        // The first request has the cached token, if any; the second one answers the challenge.
        for is_last in [false, true] {
            let ask = Ask { uri: uri.clone(), accept, authorization: authorization.as_deref(), largest };
            let reply = self.follow(ask).await?;
            match reply.status {
                StatusCode::OK => return Ok(reply),
                StatusCode::NOT_FOUND => return Err(Error::NotFound { host: from.host.clone() }),
                StatusCode::UNAUTHORIZED if !is_last => authorization = self.answer(from, who, &reply).await?,
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => break,
                status => return Err(wrong(from, format!("HTTP status {status}"))),
            }
        }
        Err(denied(from, who))
    }

    /// Sends a request and follows redirects. Credentials are not sent to another host. A redirect from TLS to plain
    /// HTTP is an error, and so are more than [`REDIRECTS`] redirects.
    async fn follow(&self, mut ask: Ask<'_>) -> Result<Reply, Error> {
        for _ in 0..=REDIRECTS {
            let reply = self.transport.send(&ask).await?;
            let Some(target) = reply.redirect(&ask.uri) else { return Ok(reply) };
            let is_same = target.scheme() == ask.uri.scheme() && target.authority() == ask.uri.authority();
            if ask.uri.scheme_str() == Some("https") && target.scheme_str() != Some("https") {
                let what = format!("a redirect from https to {target}");
                return Err(Error::Wrong { host: host(&ask.uri), what });
            }
            if !is_same {
                ask.authorization = None;
            }
            ask.uri = target;
        }
        Err(Error::Wrong { host: host(&ask.uri), what: format!("more than {REDIRECTS} redirects") })
    }

    /// Returns the `Authorization` header for the next request. `reply` is the 401 response of the registry, which says
    /// how to authenticate.
    async fn answer(&self, from: &Repository, who: &Credentials, reply: &Reply) -> Result<Option<String>, Error> {
        let headers = reply.headers.get_all(WWW_AUTHENTICATE);
        let challenge = headers.iter().find_map(|header| Challenge::read(header.to_str().ok()?));
        match challenge {
            Some(Challenge::Basic) if from.is_private() => who.basic().map(Some).ok_or_else(|| denied(from, who)),
            Some(Challenge::Bearer { realm, service }) => self.token(from, who, &realm, &service).await.map(Some),
            _ => Err(denied(from, who)),
        }
    }

    /// Fetches a token from the token service, and caches it. The token permits reading one repository. `realm` is the
    /// URL of the token service, and `service` is the name by which the token service knows the registry.
    async fn token(&self, from: &Repository, who: &Credentials, realm: &str, service: &str) -> Result<String, Error> {
        let separator = if realm.contains('?') { '&' } else { '?' };
        let scope = format!("repository:{}:pull", from.path);
        let address = format!("{realm}{separator}service={}&scope={}", encoded(service), encoded(&scope));
        let uri: Uri =
            address.parse().map_err(|_| wrong(from, format!("{realm:?} is not a valid URL of a token service")))?;
        let is_secure = uri.scheme_str() == Some("https") || from.is_plain && from.is_private();
        let basic = who.basic().filter(|_| is_secure && is_trusted(&host(&uri), from));
        let ask = Ask { uri, accept: "application/json", authorization: basic.as_deref(), largest: MAX_TOKEN_BYTES };
        let reply = self.follow(ask).await?;
        if reply.status != StatusCode::OK {
            return Err(denied(from, who));
        }
        let token: Token = serde_json::from_slice(&reply.body).map_err(|error| wrong(from, error.to_string()))?;
        let life = token.expires_in.map_or(TOKEN_LIFE, Duration::from_secs).saturating_sub(TOKEN_MARGIN);
        let text = token.token.or(token.access_token).filter(|text| !text.is_empty());
        let header = format!("Bearer {}", text.ok_or_else(|| denied(from, who))?);
        self.cache_token(from, who, &header, life);
        Ok(header)
    }

    fn cached_token(&self, from: &Repository, who: &Credentials) -> Option<String> {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let (header, until) = tokens.get(&(from.clone(), who.fingerprint()))?;
        (Instant::now() < *until).then(|| header.clone())
    }

    fn cache_token(&self, from: &Repository, who: &Credentials, header: &str, life: Duration) {
        // Token services may state a very long lifetime; a day is enough.
        let until = Instant::now() + life.min(Duration::from_secs(86_400));
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= TOKENS {
            tokens.clear();
        }
        tokens.insert((from.clone(), who.fingerprint()), (header.to_owned(), until));
    }
}

fn wrong(from: &Repository, what: String) -> Error {
    Error::Wrong { host: from.host.clone(), what }
}

fn denied(from: &Repository, who: &Credentials) -> Error {
    let hint = match who {
        Credentials::Anonymous => ": no pull secret has credentials for this repository",
        Credentials::User { .. } if !from.is_private() => ": credentials are not sent without TLS",
        Credentials::User { .. } => ": the credentials in the pull secret do not suffice",
    };
    Error::Denied { host: from.host.clone(), hint }
}

/// Percent-encodes a text for the query of a URL.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
