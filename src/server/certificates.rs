//! The serving certificate. It is loaded from a folder, checked, and replaced without downtime.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::cryptography::provider;

/// File name of the certificate chain, leaf first, as in a Secret of type `kubernetes.io/tls`.
pub const CHAIN_FILE: &str = "tls.crt";
/// File name of the private key that belongs to the leaf certificate.
pub const KEY_FILE: &str = "tls.key";

/// The reason why a certificate, its key or the clients' CA cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A certificate file, key file or CA file cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// Path of the file that cannot be read.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A certificate file, key file or CA file is not valid PEM, or is truncated.
    #[error("{}: is not valid PEM: {source}", path.display())]
    Pem {
        /// Path of the invalid file.
        path: PathBuf,
        /// The error of the PEM parser.
        source: pem::Error,
    },
    /// The chain file contains no certificate.
    #[error("{}: contains no certificate; expected the leaf first, then its intermediates", path.display())]
    NoCertificate {
        /// Path of the chain file, `tls.crt`.
        path: PathBuf,
    },
    /// The file of the clients' CA contains no certificate.
    #[error("{}: contains no certificate; expected the CA that signs clients' certificates, in PEM", path.display())]
    NoAuthority {
        /// Path of the CA file.
        path: PathBuf,
    },
    /// The CA file for client certificates contains a certificate that cannot be used as a CA.
    #[error("{}: contains a certificate that cannot be a CA: {problem}", path.display())]
    Authority {
        /// Path of the CA file.
        path: PathBuf,
        /// Why rustls rejects the certificate.
        problem: String,
    },
    /// The leaf is not an X.509 certificate.
    #[error("{}: its first certificate is not X.509: {problem}", path.display())]
    NotX509 {
        /// Path of the chain file, `tls.crt`.
        path: PathBuf,
        /// The error of the X.509 parser.
        problem: String,
    },
    /// The private key does not belong to the leaf certificate, or is of a type that TLS handshakes cannot use.
    #[error("{}: does not match the first certificate of {CHAIN_FILE}: {source}", path.display())]
    Key {
        /// Path of the key file.
        path: PathBuf,
        /// The error of rustls.
        source: rustls::Error,
    },
}

/// A certificate chain and the private key of its leaf certificate. The key was checked to belong to the leaf
/// certificate.
#[derive(Debug, Clone)]
pub struct Pair {
    key: Arc<CertifiedKey>,
    leaf: CertificateDer<'static>,
    expires: i64,
}

impl Pair {
    /// Parses a chain and a key in PEM. Error messages call them `tls.crt` and `tls.key`.
    ///
    /// # Errors
    /// If the chain or the key is invalid, or if they do not match.
    pub fn parse(chain: &[u8], key: &[u8]) -> Result<Self, CertificateError> {
        Self::parse_in(Path::new(""), chain, key)
    }

    fn parse_in(folder: &Path, chain: &[u8], key: &[u8]) -> Result<Self, CertificateError> {
        let (chain_path, key_path) = (folder.join(CHAIN_FILE), folder.join(KEY_FILE));
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<_, _>>()
            .map_err(|source| CertificateError::Pem { path: chain_path.clone(), source })?;
        let Some(leaf) = chain.first().cloned() else {
            return Err(CertificateError::NoCertificate { path: chain_path });
        };
        let expires = expiry(&leaf).map_err(|problem| CertificateError::NotX509 { path: chain_path, problem })?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|source| CertificateError::Pem { path: key_path.clone(), source })?;
        let key = CertifiedKey::from_der(chain, key, &provider())
            .map_err(|source| CertificateError::Key { path: key_path, source })?;
        Ok(Self { key: Arc::new(key), leaf, expires })
    }
}

fn expiry(leaf: &CertificateDer<'_>) -> Result<i64, String> {
    let (_, certificate) = x509_parser::parse_x509_certificate(leaf).map_err(|error| error.to_string())?;
    Ok(certificate.validity().not_after.timestamp())
}

/// The contents of the certificate file and the key file of a folder.
pub(super) struct Files {
    folder: PathBuf,
    chain: Vec<u8>,
    key: Vec<u8>,
}

impl Files {
    /// Reads the certificate file and the key file from one version of the folder.
    ///
    /// In a Secret volume, each file is a symbolic link through `..data`, which links to the folder of the current
    /// version. An update replaces `..data`. The function resolves `..data` once, so both files are of the same
    /// version. If that version is deleted while the function reads it, the function reads the next version.
    pub(super) fn read(folder: &Path) -> Result<Self, CertificateError> {
        let mut version = version_of(folder);
        loop {
            let files = Self::read_version(folder, &version);
            let now = version_of(folder);
            if files.is_ok() || now == version {
                return files;
            }
            version = now;
        }
    }

    fn read_version(folder: &Path, version: &Path) -> Result<Self, CertificateError> {
        let read = |file: &str| {
            let failed = |source| CertificateError::Read { path: folder.join(file), source };
            fs::read(version.join(file)).map_err(failed)
        };
        Ok(Self { chain: read(CHAIN_FILE)?, key: read(KEY_FILE)?, folder: folder.to_owned() })
    }

    pub(super) fn parse(&self) -> Result<Pair, CertificateError> {
        Pair::parse_in(&self.folder, &self.chain, &self.key)
    }

    /// Returns a hash of the contents of the certificate file and the key file.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.chain, &self.key).hash(&mut hasher);
        hasher.finish()
    }
}

/// Returns the folder that the link `..data` in `folder` points to. Returns `folder` itself if there is no link.
fn version_of(folder: &Path) -> PathBuf {
    fs::canonicalize(folder.join("..data")).unwrap_or_else(|_| folder.to_owned())
}

/// Maximum duration of a handshake of the readiness probe. After the certificate is replaced, the probe accepts the
/// previous certificate for this time, because a handshake may have started before the replacement.
pub(super) const HANDSHAKE_TIME: Duration = Duration::from_secs(1);

/// The current serving certificate. A new certificate is used from the next handshake on.
#[derive(Debug)]
pub struct Certificates {
    current: ArcSwap<Served>,
    folder: Option<PathBuf>,
}

#[derive(Debug)]
struct Served {
    pair: Pair,
    /// The previous leaf certificate, and when it was replaced; `None` before the first replacement.
    before: Option<(CertificateDer<'static>, Instant)>,
}

impl Certificates {
    /// Returns a certificate store that serves `pair` until it is [replaced](Self::replace).
    pub fn new(pair: Pair) -> Self {
        Self { current: ArcSwap::from_pointee(Served { pair, before: None }), folder: None }
    }

    /// Loads the files `tls.crt` and `tls.key` from a folder. A running server watches these files for changes.
    ///
    /// # Errors
    /// If the files cannot be read, or are not a valid certificate with its key.
    pub fn from_folder(folder: impl Into<PathBuf>) -> Result<Self, CertificateError> {
        let folder = folder.into();
        let pair = Files::read(&folder)?.parse()?;
        Ok(Self { folder: Some(folder), ..Self::new(pair) })
    }

    /// Replaces the serving certificate with `pair`, from the next handshake on.
    pub fn replace(&self, pair: Pair) {
        let before = Some((self.leaf(), Instant::now()));
        self.current.store(Arc::new(Served { pair, before }));
    }

    /// Returns when the current leaf certificate expires, in seconds since 1970.
    pub fn expires(&self) -> i64 {
        self.current.load().pair.expires
    }

    /// Returns the current leaf certificate.
    pub fn leaf(&self) -> CertificateDer<'static> {
        self.current.load().pair.leaf.clone()
    }

    /// Returns whether `leaf` is the current leaf certificate of the server, or the previous one if it was replaced
    /// less than [`HANDSHAKE_TIME`] before `now`. A handshake in progress may have started with the previous one.
    pub(super) fn is_own(&self, leaf: &CertificateDer<'_>, now: Instant) -> bool {
        let served = self.current.load();
        let was = |(before, until): &(CertificateDer<'_>, Instant)| {
            before == leaf && now.saturating_duration_since(*until) < HANDSHAKE_TIME
        };
        served.pair.leaf == *leaf || served.before.as_ref().is_some_and(was)
    }

    /// Returns the current certificate chain and its private key.
    pub(super) fn key(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.current.load().pair.key)
    }

    /// Returns whether the server already serves the certificate chain of `pair`.
    pub(super) fn serves(&self, pair: &Pair) -> bool {
        self.current.load().pair.key.cert == pair.key.cert
    }

    pub(super) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.key())
    }
}
