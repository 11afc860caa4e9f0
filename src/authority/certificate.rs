//! A certificate as this room looks at it: its bytes, and the time in which it is good.

use std::fmt;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject as _};
use time::{Duration, OffsetDateTime};

/// How far before its making a certificate begins to hold: as far as the clocks of an API server and of a node may be
/// apart. A node whose clock is further ahead makes certificates that nobody takes yet; they are replaced when it is
/// set right.
pub const BACKDATED: Duration = Duration::HOUR;

/// A certificate in DER, and when it was made and expires.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Certificate {
    der: Vec<u8>,
    issued: OffsetDateTime,
    expires: OffsetDateTime,
}

/// Why a text holds no certificates.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// It is no PEM, or breaks off in the middle of it.
    #[error("it is not whole PEM: {0}")]
    Pem(#[from] pem::Error),
    /// One of them is no X.509 certificate.
    #[error("it holds what is no X.509 certificate: {0}")]
    NotX509(String),
}

impl Certificate {
    /// A certificate of these bytes, made at `issued`; the bytes are not looked at.
    pub fn new(der: Vec<u8>, issued: OffsetDateTime, expires: OffsetDateTime) -> Self {
        Self { der, issued, expires }
    }

    /// Every certificate of a PEM text.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn read_all(text: &[u8]) -> Result<Vec<Self>, CertificateError> {
        CertificateDer::pem_slice_iter(text).map(|der| Self::read(&der?)).collect()
    }

    fn read(der: &CertificateDer<'_>) -> Result<Self, CertificateError> {
        let not_x509 = |problem: &dyn fmt::Display| CertificateError::NotX509(problem.to_string());
        let (_, parsed) = x509_parser::parse_x509_certificate(der).map_err(|error| not_x509(&error))?;
        let (from, to) = (parsed.validity().not_before.to_datetime(), parsed.validity().not_after.to_datetime());
        Ok(Self { der: der.to_vec(), issued: from.saturating_add(BACKDATED), expires: to })
    }

    /// The text of it in PEM.
    pub fn pem(&self) -> String {
        let config = ::pem::EncodeConfig::new().set_line_ending(::pem::LineEnding::LF);
        ::pem::encode_config(&::pem::Pem::new("CERTIFICATE", self.der.clone()), config)
    }

    /// Its bytes.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// When it expires.
    pub fn expires(&self) -> OffsetDateTime {
        self.expires
    }

    /// When two thirds of its life are over.
    pub fn due(&self) -> OffsetDateTime {
        self.issued + (self.expires - self.issued) * 2 / 3
    }

    /// Whether a clock that says `now` takes it.
    pub fn holds(&self, now: OffsetDateTime) -> bool {
        self.issued - BACKDATED <= now && now < self.expires
    }

    /// Whether another one should take its place: two thirds of its life are over, or it does not hold yet.
    pub fn is_due(&self, now: OffsetDateTime) -> bool {
        now >= self.due() || !self.holds(now)
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = &self.der[self.der.len().saturating_sub(4)..];
        write!(f, "Certificate(…{end:02x?}, {} to {})", self.issued, self.expires)
    }
}
