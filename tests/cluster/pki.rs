//! The CA of the cluster, and the certificates of its parts.

use std::fs;
use std::io;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use time::{Duration, OffsetDateTime};

/// A CA that writes certificates into a folder.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
}

/// The subject of a certificate: user and group of Kubernetes, and the names of a server.
pub struct Subject {
    /// The file name.
    pub file: &'static str,
    /// The user.
    pub user: &'static str,
    /// The group; may be empty.
    pub group: &'static str,
    /// DNS names and IP addresses.
    pub names: Vec<String>,
}

impl Authority {
    /// Creates a CA, and writes its certificate to `ca.crt`.
    pub fn create(folder: &Path) -> io::Result<Self> {
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let mut params = parameters("portcullis test cluster", "", &[])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).map_err(io::Error::other)?;
        fs::write(folder.join("ca.crt"), certificate.pem())?;
        Ok(Self { issuer: Issuer::new(params, key) })
    }

    /// Writes a certificate and its key.
    pub fn issue(&self, folder: &Path, subject: &Subject) -> io::Result<()> {
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let params = parameters(subject.user, subject.group, &subject.names)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(io::Error::other)?;
        fs::write(folder.join(format!("{}.crt", subject.file)), certificate.pem())?;
        fs::write(folder.join(format!("{}.key", subject.file)), key.serialize_pem())
    }
}

fn parameters(user: &str, group: &str, names: &[String]) -> io::Result<CertificateParams> {
    let mut params = CertificateParams::new(names).map_err(io::Error::other)?;
    params.distinguished_name.push(DnType::CommonName, user);
    if !group.is_empty() {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    params.not_before = OffsetDateTime::now_utc() - Duration::HOUR;
    params.not_after = OffsetDateTime::now_utc() + Duration::DAY;
    Ok(params)
}
