//! A CA for tests, and the certificates that it issues for the cluster and for Portcullis.

use std::fs;
use std::io;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use time::{Duration, OffsetDateTime};

/// A CA that writes certificates into a folder.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
}

/// The subject of a certificate: the user and group of a Kubernetes client, or the names of a server.
pub struct Subject {
    /// The name of the files with the certificate and the key, without extension.
    pub file: &'static str,
    /// The common name, which is the user of a client.
    pub user: &'static str,
    /// The organization, which is the group of a client. May be empty.
    pub group: &'static str,
    /// The DNS names and IP addresses of a server.
    pub names: Vec<String>,
}

impl Authority {
    /// Creates a CA, and writes its certificate to `ca.crt` in a folder.
    pub fn create(folder: &Path) -> io::Result<Self> {
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let mut params = parameters("portcullis test cluster", "", &[])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).map_err(io::Error::other)?;
        fs::write(folder.join("ca.crt"), certificate.pem())?;
        Ok(Self { issuer: Issuer::new(params, key) })
    }

    /// Issues a certificate, and writes it and its key to files in a folder.
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
