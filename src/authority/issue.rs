//! Issues CAs and leaf certificates. The keys are ECDSA P-256 keys, because signing with them is fast. Each TLS
//! handshake needs a signature, because the API server does not resume TLS sessions.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256,
};
use rustls::pki_types::CertificateDer;
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

use super::certificate::{BACKDATED, Certificate};
use super::state::Authority;

/// A leaf certificate, its key and its CA.
#[derive(Clone)]
pub struct Leaf {
    /// The leaf certificate.
    pub certificate: Certificate,
    /// The private key of the leaf certificate, PKCS #8 in PEM.
    pub key: String,
    /// The certificate of the CA that signed the leaf certificate.
    pub signer: Certificate,
}

impl Leaf {
    /// Returns whether the leaf certificate should be replaced. This is the case if the CA `signer` did not sign the
    /// leaf certificate, or if two thirds of the lifetime of the leaf certificate are over ([`Certificate::is_due`]).
    pub fn is_due(&self, signer: &Certificate, now: OffsetDateTime) -> bool {
        self.signer != *signer || self.certificate.is_due(now)
    }
}

/// Creates a CA with a self-signed certificate. The certificate is valid from `now` for the duration `life`.
///
/// # Errors
/// If key generation or signing fails.
pub fn authority(now: OffsetDateTime, life: Duration) -> Result<Authority, rcgen::Error> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut params = CertificateParams::default();
    // Unique names make the CAs in a bundle distinguishable.
    let made = now.format(&Rfc3339).unwrap_or_default();
    params.distinguished_name.push(DnType::CommonName, format!("portcullis CA {made}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = set_validity(&mut params, now, now + life).self_signed(&key)?;
    Ok(Authority { certificate: certificate_of(certificate.der(), &params), key: key.serialize_pem() })
}

/// Creates a key and signs a leaf certificate for `names` (DNS names or IP addresses). The leaf certificate expires no
/// later than its CA.
///
/// # Errors
/// If a name is invalid in a certificate, or the CA cannot sign.
pub fn leaf(signer: &Authority, names: &[String], now: OffsetDateTime, life: Duration) -> Result<Leaf, rcgen::Error> {
    let issuer_key = KeyPair::from_pem(&signer.key)?;
    let issuer = Issuer::from_ca_cert_der(&CertificateDer::from(signer.certificate.der()), issuer_key)?;
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, "portcullis");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let ends = (now + life).min(signer.certificate.expires()).max(now + Duration::SECOND);
    let certificate = set_validity(&mut params, now, ends).signed_by(&key, &issuer)?;
    let certificate = certificate_of(certificate.der(), &params);
    Ok(Leaf { certificate, key: key.serialize_pem(), signer: signer.certificate.clone() })
}

fn set_validity(params: &mut CertificateParams, from: OffsetDateTime, to: OffsetDateTime) -> &CertificateParams {
    // X.509 has a resolution of seconds; truncation never extends the validity.
    let whole = |moment: OffsetDateTime| moment.replace_nanosecond(0).unwrap_or(moment);
    params.not_before = whole(from) - BACKDATED;
    params.not_after = whole(to);
    params
}

fn certificate_of(der: &[u8], params: &CertificateParams) -> Certificate {
    Certificate::new(der.to_vec(), params.not_before + BACKDATED, params.not_after)
}
