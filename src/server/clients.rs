//! Verifies the CA and the names of client certificates, if the server requires client certificates.
//!
//! The server checks the CA and the names during the TLS handshake, before it reads a request. The operator of the API
//! server sees which check failed. If the client sent no certificate, Go reports the TLS alert as `remote error: tls:
//! certificate required`. For a wrong CA, the alert ends with `unknown certificate authority`. For a wrong name, it
//! ends with `access denied`. The server's log contains the names of rejected clients.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError as Refusal, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
};
use x509_parser::extensions::GeneralName;

use super::certificates::{CertificateError, Certificates};
use super::metrics::{Metrics, RefusedClient};
use crate::cryptography::provider;

/// Minimum interval between log records about rejected clients. The records are limited because rejected clients retry
/// continuously.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The requirements for the certificates of clients: the CA that must have signed them, and the names of accepted
/// clients. A running server reloads the CA file when it changes.
#[derive(Debug)]
pub struct Clients {
    file: PathBuf,
    names: Vec<String>,
    signed: ArcSwap<Arc<dyn ClientCertVerifier>>,
}

impl Clients {
    /// Loads the CAs of client certificates from `file` (PEM). The server accepts a certificate if one of these CAs
    /// signed it. In addition, the common name, a DNS name or a URI of the certificate must be in `names`. If `names`
    /// is empty, the server accepts every certificate of these CAs.
    ///
    /// # Errors
    /// If the file cannot be read, is not valid PEM, contains no certificate, or contains a certificate that cannot be
    /// a CA.
    pub fn from_file(file: impl Into<PathBuf>, names: Vec<String>) -> Result<Self, CertificateError> {
        let file = file.into();
        let signed = Authorities::read(&file)?.verifier()?;
        Ok(Self { file, names, signed: ArcSwap::from_pointee(signed) })
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    pub(super) fn replace(&self, signed: Arc<dyn ClientCertVerifier>) {
        self.signed.store(Arc::new(signed));
    }

    fn accepts(&self, names: &[String]) -> bool {
        self.names.is_empty() || names.iter().any(|name| self.names.contains(name))
    }
}

/// The contents of the file with the CAs of client certificates.
pub(super) struct Authorities {
    file: PathBuf,
    bytes: Vec<u8>,
}

impl Authorities {
    pub(super) fn read(file: &Path) -> Result<Self, CertificateError> {
        let failed = |source| CertificateError::Read { path: file.to_owned(), source };
        Ok(Self { bytes: fs::read(file).map_err(failed)?, file: file.to_owned() })
    }

    /// Returns a hash of the contents of the file with the CAs.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.bytes.hash(&mut hasher);
        hasher.finish()
    }

    pub(super) fn verifier(&self) -> Result<Arc<dyn ClientCertVerifier>, CertificateError> {
        let path = || self.file.clone();
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(&self.bytes) {
            let root = root.map_err(|source| CertificateError::Pem { path: path(), source })?;
            roots
                .add(root)
                .map_err(|source| CertificateError::Authority { path: path(), problem: source.to_string() })?;
        }
        if roots.is_empty() {
            return Err(CertificateError::NoAuthority { path: path() });
        }
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
            .build()
            .map_err(|source| CertificateError::Authority { path: path(), problem: source.to_string() })
    }
}

/// The verifier of client certificates in TLS handshakes.
#[derive(Debug)]
pub(super) struct Verifier {
    clients: Arc<Clients>,
    /// The serving certificate. It is also accepted as a client certificate, because the readiness probe of this server
    /// uses it to connect to the server.
    own: Arc<Certificates>,
    metrics: Arc<Metrics>,
    began: Instant,
    /// Time of the last log record about a rejected client, in milliseconds since `began`, plus one. 0 before the first
    /// record.
    logged: AtomicU64,
}

impl Verifier {
    pub(super) fn new(clients: Arc<Clients>, own: Arc<Certificates>, metrics: Arc<Metrics>) -> Self {
        Self { clients, own, metrics, began: Instant::now(), logged: AtomicU64::new(0) }
    }

    fn refuse(&self, reason: RefusedClient, names: &[String], error: &Error) {
        self.metrics.refused_client(reason);
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1;
        let logged = self.logged.load(Ordering::Relaxed);
        let is_due = logged == 0 || now - logged > LOG_INTERVAL.as_millis() as u64;
        if is_due && self.logged.compare_exchange(logged, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            let names = names.join(", ");
            tracing::warn!(names, %error, "rejected a client certificate; see --client-ca and --client-name");
        }
    }
}

impl ClientCertVerifier for Verifier {
    /// Returns no hints about accepted CAs, because the CA file may change. Go's client sends its certificate without
    /// hints.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if self.own.is_own(leaf, Instant::now()) {
            return Ok(ClientCertVerified::assertion());
        }
        let names = names_of(leaf);
        let signed = self.clients.signed.load_full().verify_client_cert(leaf, intermediates, now);
        let signed = signed.map_err(as_unknown_issuer);
        signed.inspect_err(|error| self.refuse(RefusedClient::Authority, &names, error))?;
        if !self.clients.accepts(&names) {
            let error = Error::InvalidCertificate(Refusal::ApplicationVerificationFailure);
            self.refuse(RefusedClient::Name, &names, &error);
            return Err(error);
        }
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, leaf, signature, &provider().signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, leaf, signature, &provider().signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}

/// Replaces the error for a bad signature with the error for an unknown issuer. Many clusters have CAs with the same
/// name and different keys. A client with a certificate of such a CA would otherwise receive a misleading alert about
/// decryption.
fn as_unknown_issuer(error: Error) -> Error {
    match error {
        Error::InvalidCertificate(Refusal::BadSignature) => Error::InvalidCertificate(Refusal::UnknownIssuer),
        error => error,
    }
}

/// Returns the common names, DNS names and URIs of a certificate.
fn names_of(leaf: &CertificateDer<'_>) -> Vec<String> {
    let Ok((_, parsed)) = x509_parser::parse_x509_certificate(leaf) else { return Vec::new() };
    let common = parsed.subject().iter_common_name().filter_map(|name| name.as_str().ok().map(ToOwned::to_owned));
    let alternative = parsed.subject_alternative_name().ok().flatten();
    let alternative = alternative.iter().flat_map(|extension| &extension.value.general_names);
    let alternative = alternative.filter_map(|name| match name {
        GeneralName::DNSName(name) | GeneralName::URI(name) => Some((*name).to_owned()),
        _ => None,
    });
    common.chain(alternative).collect()
}
