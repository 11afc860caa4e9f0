//! The client of registries.

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

/// The media types of manifests that name a configuration and layers.
const MANIFESTS: &str =
    "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json";
/// The specification has registries take manifests of 4 MiB.
const LARGEST_MANIFEST: usize = 4 << 20;
/// Some thousand tags.
const LARGEST_LIST: usize = 1 << 20;
/// A token is a few kilobytes.
const LARGEST_TOKEN: usize = 64 << 10;
/// A registry that keeps blobs elsewhere redirects once; more than this is a loop.
const REDIRECTS: usize = 5;
/// Requests at a time, to all registries together.
const AT_ONCE: usize = 16;
/// Tokens that are kept; when there are more, all are asked for again.
const TOKENS: usize = 1_000;
/// What the specification says of a token that does not say how long it is good for.
const TOKEN_LIFE: Duration = Duration::from_secs(60);
/// A token that ends in this moment is of no use.
const TOKEN_MARGIN: Duration = Duration::from_secs(10);

/// How a client is made.
#[derive(Debug, Clone)]
pub struct Options {
    /// Authorities that are trusted besides the system's.
    pub authorities: Vec<CertificateDer<'static>>,
    /// How long a request may take.
    pub within: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { authorities: Vec::new(), within: Duration::from_secs(10) }
    }
}

/// Reads from registries.
pub struct Client {
    transport: Transport,
    tokens: Mutex<HashMap<TokenKey, (String, Instant)>>,
    permits: Semaphore,
}

/// What a token is good for: a repository, and for whom.
type TokenKey = (Repository, String);

/// A manifest.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// Its digest.
    pub digest: String,
    /// Its configuration.
    pub config: Blob,
    /// Its layers.
    pub layers: Vec<Blob>,
}

/// Content of a registry: `Descriptor` in OCI's words.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Blob {
    /// What it is.
    #[serde(default)]
    pub media_type: String,
    /// Its digest.
    pub digest: String,
    /// Its size in bytes, where it is said.
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
    /// A client.
    ///
    /// # Errors
    /// When an authority is no certificate.
    pub fn new(options: &Options) -> Result<Self, rustls::Error> {
        let transport = Transport::new(&options.authorities, options.within)?;
        Ok(Self { transport, tokens: Mutex::default(), permits: Semaphore::new(AT_ONCE) })
    }

    /// The manifest that a tag names.
    ///
    /// # Errors
    /// See [`Error`]; also when the registry says another digest than the manifest has.
    pub async fn manifest(&self, from: &Repository, tag: &str, who: &Credentials) -> Result<Manifest, Error> {
        let reply = self.get(from, who, &format!("manifests/{tag}"), MANIFESTS, LARGEST_MANIFEST).await?;
        let found = digest::of(&reply.body);
        let told = reply.headers.get("docker-content-digest").and_then(|value| value.to_str().ok());
        if let Some(told) = told.filter(|told| digest::is_valid(told) && **told != found) {
            return Err(wrong(from, format!("the manifest of {tag} has the digest {found}, the registry says {told}")));
        }
        let wire: WireManifest = serde_json::from_slice(&reply.body)
            .map_err(|error| wrong(from, format!("{tag} has no manifest of an artifact: {error}")))?;
        Ok(Manifest { digest: found, config: wire.config, layers: wire.layers })
    }

    /// The content of a blob of at most `largest` bytes.
    ///
    /// # Errors
    /// See [`Error`]; also when the content has another digest or size.
    pub async fn blob(
        &self,
        from: &Repository,
        blob: &Blob,
        largest: usize,
        who: &Credentials,
    ) -> Result<Bytes, Error> {
        if !digest::is_valid(&blob.digest) {
            return Err(wrong(from, format!("{:?} is no digest that can be verified", blob.digest)));
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

    /// The tags of a repository, as many as come at once.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn tags(&self, from: &Repository, who: &Credentials) -> Result<Vec<String>, Error> {
        let reply = self.get(from, who, "tags/list?n=1000", "application/json", LARGEST_LIST).await?;
        let tags: Tags = serde_json::from_slice(&reply.body).map_err(|error| wrong(from, error.to_string()))?;
        Ok(tags.tags.unwrap_or_default())
    }

    /// Something of a repository, with whatever the registry asks for first.
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
        let uri: Uri = address.parse().map_err(|_| wrong(from, format!("{what:?} is no address")))?;
        let mut authorization = self.kept(from, who);
        // Once as it is known so far, once more as the registry asked for.
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

    /// Follows redirects. What is for one host is not sent to another, and nothing that was secret becomes plain.
    async fn follow(&self, mut ask: Ask<'_>) -> Result<Reply, Error> {
        for _ in 0..=REDIRECTS {
            let reply = self.transport.send(&ask).await?;
            let Some(target) = reply.redirect(&ask.uri) else { return Ok(reply) };
            let is_same = target.scheme() == ask.uri.scheme() && target.authority() == ask.uri.authority();
            if ask.uri.scheme_str() == Some("https") && target.scheme_str() != Some("https") {
                let what = format!("a redirect from TLS to {target}");
                return Err(Error::Wrong { host: host(&ask.uri), what });
            }
            if !is_same {
                ask.authorization = None;
            }
            ask.uri = target;
        }
        Err(Error::Wrong { host: host(&ask.uri), what: format!("more than {REDIRECTS} redirects") })
    }

    /// What to send after the registry said 401.
    async fn answer(&self, from: &Repository, who: &Credentials, reply: &Reply) -> Result<Option<String>, Error> {
        let headers = reply.headers.get_all(WWW_AUTHENTICATE);
        let challenge = headers.iter().find_map(|header| Challenge::read(header.to_str().ok()?));
        match challenge {
            Some(Challenge::Basic) if from.is_private() => who.basic().map(Some).ok_or_else(|| denied(from, who)),
            Some(Challenge::Bearer { realm, service }) => self.token(from, who, &realm, &service).await.map(Some),
            _ => Err(denied(from, who)),
        }
    }

    /// A token for reading one repository.
    async fn token(&self, from: &Repository, who: &Credentials, realm: &str, service: &str) -> Result<String, Error> {
        let separator = if realm.contains('?') { '&' } else { '?' };
        let scope = format!("repository:{}:pull", from.path);
        let address = format!("{realm}{separator}service={}&scope={}", encoded(service), encoded(&scope));
        let uri: Uri = address.parse().map_err(|_| wrong(from, format!("the token service {realm:?}")))?;
        let is_secure = uri.scheme_str() == Some("https") || from.is_plain && from.is_private();
        let basic = who.basic().filter(|_| is_secure && is_trusted(&host(&uri), from));
        let ask = Ask { uri, accept: "application/json", authorization: basic.as_deref(), largest: LARGEST_TOKEN };
        let reply = self.follow(ask).await?;
        if reply.status != StatusCode::OK {
            return Err(denied(from, who));
        }
        let token: Token = serde_json::from_slice(&reply.body).map_err(|error| wrong(from, error.to_string()))?;
        let life = token.expires_in.map_or(TOKEN_LIFE, Duration::from_secs).saturating_sub(TOKEN_MARGIN);
        let text = token.token.or(token.access_token).filter(|text| !text.is_empty());
        let header = format!("Bearer {}", text.ok_or_else(|| denied(from, who))?);
        self.keep(from, who, &header, life);
        Ok(header)
    }

    fn kept(&self, from: &Repository, who: &Credentials) -> Option<String> {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let (header, until) = tokens.get(&(from.clone(), who.fingerprint()))?;
        (Instant::now() < *until).then(|| header.clone())
    }

    fn keep(&self, from: &Repository, who: &Credentials, header: &str, life: Duration) {
        // Whatever a token service says, a day is long enough.
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
        Credentials::Anonymous => ": no pull secret has credentials for it",
        Credentials::User { .. } if !from.is_private() => ": credentials are not sent without TLS",
        Credentials::User { .. } => ": the credentials in the pull secret do not suffice",
    };
    Error::Denied { host: from.host.clone(), hint }
}

/// A text as part of a query.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
