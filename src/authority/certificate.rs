//! A certificate and its validity period.

use std::fmt;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject as _};
use time::{Duration, OffsetDateTime};

/// How far `notBefore` of a certificate is before the time of issue. It is the largest expected clock difference
/// between an API server and a node.
///
/// If the clock of a node is further ahead, the replicas on this node issue certificates that API servers reject as not
/// valid yet. The replicas replace these certificates when the clock is correct again.
pub const BACKDATED: Duration = Duration::HOUR;

/// An X.509 certificate in DER, with the times of issue and expiry.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Certificate {
    der: Vec<u8>,
    issued: OffsetDateTime,
    expires: OffsetDateTime,
}

/// The reason why certificates cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The input of [`Certificate::read_all`] is not valid PEM.
    #[error("not valid PEM: {0}")]
    Pem(#[from] pem::Error),
    /// One of the certificates is not X.509.
    #[error("not an X.509 certificate: {0}")]
    NotX509(String),
}

impl Certificate {
    /// Creates a certificate from its DER and the times of issue and expiry, without parsing the DER.
    pub fn new(der: Vec<u8>, issued: OffsetDateTime, expires: OffsetDateTime) -> Self {
        Self { der, issued, expires }
    }

    /// Parses all certificates of a PEM text.
    ///
    /// # Errors
    /// If the text is not valid PEM, or if one of the certificates is not X.509.
    pub fn read_all(text: &[u8]) -> Result<Vec<Self>, CertificateError> {
        CertificateDer::pem_slice_iter(text).map(|der| Self::read(&der?)).collect()
    }

    fn read(der: &CertificateDer<'_>) -> Result<Self, CertificateError> {
        let not_x509 = |problem: &dyn fmt::Display| CertificateError::NotX509(problem.to_string());
        let (_, parsed) = x509_parser::parse_x509_certificate(der).map_err(|error| not_x509(&error))?;
        let (from, to) = (parsed.validity().not_before.to_datetime(), parsed.validity().not_after.to_datetime());
        Ok(Self { der: der.to_vec(), issued: from.saturating_add(BACKDATED), expires: to })
    }

    /// Returns the certificate in PEM.
    pub fn pem(&self) -> String {
        let config = ::pem::EncodeConfig::new().set_line_ending(::pem::LineEnding::LF);
        ::pem::encode_config(&::pem::Pem::new("CERTIFICATE", self.der.clone()), config)
    }

    /// Returns the certificate in DER.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// Returns the SHA-256 digest of the DER in hexadecimal.
    pub fn fingerprint(&self) -> String {
        let digest = ring::digest::digest(&ring::digest::SHA256, &self.der);
        digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns the time at which the certificate was issued.
    pub fn issued(&self) -> OffsetDateTime {
        self.issued
    }

    /// Returns the time at which the certificate expires.
    pub fn expires(&self) -> OffsetDateTime {
        self.expires
    }

    /// Returns the time at which the certificate should be replaced: after two thirds of its lifetime.
    pub fn due(&self) -> OffsetDateTime {
        self.issued + (self.expires - self.issued) * 2 / 3
    }

    /// Returns whether the certificate is valid at `now`.
    pub fn is_valid(&self, now: OffsetDateTime) -> bool {
        self.issued - BACKDATED <= now && now < self.expires
    }

    /// Returns whether the certificate should be replaced at `now`. This is the case after two thirds of its lifetime,
    /// or if it is not valid.
    pub fn is_due(&self, now: OffsetDateTime) -> bool {
        now >= self.due() || !self.is_valid(now)
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = &self.der[self.der.len().saturating_sub(4)..];
        write!(f, "Certificate(…{end:02x?}, {} to {})", self.issued, self.expires)
    }
}
