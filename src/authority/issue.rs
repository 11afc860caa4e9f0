//! Making CAs and leaves: ECDSA P-256, as the API server asks for no resumption and each handshake costs a signature.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256,
};
use rustls::pki_types::CertificateDer;
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

use super::certificate::{BACKDATED, Certificate};
use super::state::Authority;

/// A leaf and its key, and the CA that signed it.
#[derive(Clone)]
pub struct Leaf {
    /// The leaf.
    pub certificate: Certificate,
    /// Its private key, PKCS #8 in PEM.
    pub key: String,
    /// The CA.
    pub signer: Certificate,
}

impl Leaf {
    /// Whether it should be signed anew: by another CA, or because it is due.
    pub fn is_due(&self, signer: &Certificate, now: OffsetDateTime) -> bool {
        self.signer != *signer || self.certificate.is_due(now)
    }
}

/// Makes a CA.
///
/// # Errors
/// When the cryptography fails.
pub fn authority(now: OffsetDateTime, life: Duration) -> Result<Authority, rcgen::Error> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut params = CertificateParams::default();
    // Each has a name of its own, so that whoever looks into a bundle tells them apart.
    let made = now.format(&Rfc3339).unwrap_or_default();
    params.distinguished_name.push(DnType::CommonName, format!("portcullis CA {made}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = valid(&mut params, now, now + life).self_signed(&key)?;
    Ok(Authority { certificate: kept(certificate.der(), &params), key: key.serialize_pem() })
}

/// Signs a leaf for `names`, which are DNS names or addresses. It does not outlive its CA.
///
/// # Errors
/// When a name cannot stand in a certificate, or the CA cannot sign.
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
    let certificate = valid(&mut params, now, ends).signed_by(&key, &issuer)?;
    let certificate = kept(certificate.der(), &params);
    Ok(Leaf { certificate, key: key.serialize_pem(), signer: signer.certificate.clone() })
}

fn valid(params: &mut CertificateParams, from: OffsetDateTime, to: OffsetDateTime) -> &CertificateParams {
    // X.509 knows whole seconds; the time in which it holds is never said to be longer than it is.
    let whole = |moment: OffsetDateTime| moment.replace_nanosecond(0).unwrap_or(moment);
    params.not_before = whole(from) - BACKDATED;
    params.not_after = whole(to);
    params
}

fn kept(der: &[u8], params: &CertificateParams) -> Certificate {
    Certificate::new(der.to_vec(), params.not_before + BACKDATED, params.not_after)
}
