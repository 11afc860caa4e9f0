//! Creates a root CA, an intermediate CA and leaf certificates, and a folder that is updated like a mounted Secret.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::CertificateDer;
use tempfile::TempDir;
use time::{Duration, OffsetDateTime};

/// A root CA and an intermediate CA that signs the leaf certificates. Chains consist of the leaf and the intermediate
/// certificate, as cert-manager writes them.
pub struct Authority {
    pub root: CertificateDer<'static>,
    intermediate: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate chain and the private key, in PEM.
#[derive(Clone)]
pub struct Leaf {
    pub chain: String,
    pub key: String,
}

impl Authority {
    pub fn new() -> Self {
        let (root_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let root_params = ca_params("root");
        let root = root_params.self_signed(&root_key).unwrap();
        let params = ca_params("intermediate");
        let intermediate = params.signed_by(&key, &Issuer::new(root_params, root_key)).unwrap();
        Self { root: root.der().clone(), intermediate: intermediate.pem(), issuer: Issuer::new(params, key) }
    }

    pub fn leaf(&self) -> Leaf {
        self.sign(CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap())
    }

    /// Returns a client certificate with the common name `name`. `alternatives` contains its DNS names and URIs.
    pub fn client(&self, name: &str, alternatives: &[&str]) -> Leaf {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        let names = alternatives.iter().map(|name| match name.contains("://") {
            true => rcgen::SanType::URI((*name).try_into().unwrap()),
            false => rcgen::SanType::DnsName((*name).try_into().unwrap()),
        });
        params.subject_alt_names = names.collect();
        self.sign(params)
    }

    /// Returns the root certificate in PEM.
    pub fn root_pem(&self) -> String {
        pem::encode(&pem::Pem::new("CERTIFICATE", self.root.to_vec()))
    }

    fn sign(&self, mut params: CertificateParams) -> Leaf {
        let key = KeyPair::generate().unwrap();
        set_validity_of_one_day(&mut params);
        let leaf = params.signed_by(&key, &self.issuer).unwrap();
        Leaf { chain: leaf.pem() + &self.intermediate, key: key.serialize_pem() }
    }
}

fn ca_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new([]).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    set_validity_of_one_day(&mut params);
    params
}

fn set_validity_of_one_day(params: &mut CertificateParams) {
    params.not_before = OffsetDateTime::now_utc() - Duration::HOUR;
    params.not_after = OffsetDateTime::now_utc() + Duration::DAY;
}

/// A folder like a mounted Secret. Each of its files is a symbolic link through `..data`. `..data` is itself a symbolic
/// link, to the folder with the current version of the files.
pub struct SecretMount {
    folder: TempDir,
    version: AtomicUsize,
}

impl SecretMount {
    pub fn new(leaf: &Leaf) -> Self {
        let mount = Self { folder: TempDir::new().unwrap(), version: AtomicUsize::new(0) };
        mount.publish(&leaf.chain, &leaf.key);
        for file in ["tls.crt", "tls.key"] {
            symlink(Path::new("..data").join(file), mount.path().join(file)).unwrap();
        }
        mount
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the certificate chain and the key into a new folder, and points the symbolic link `..data` to this
    /// folder. Existing files are never overwritten, as in a mounted Secret.
    pub fn publish(&self, chain: &str, key: &str) {
        let version = self.version.fetch_add(1, Ordering::Relaxed);
        let name = PathBuf::from(format!("..version_{version}"));
        fs::create_dir(self.path().join(&name)).unwrap();
        fs::write(self.path().join(&name).join("tls.crt"), chain).unwrap();
        fs::write(self.path().join(&name).join("tls.key"), key).unwrap();
        let before = fs::read_link(self.path().join("..data")).ok();
        symlink(&name, self.path().join("..data_tmp")).unwrap();
        fs::rename(self.path().join("..data_tmp"), self.path().join("..data")).unwrap();
        if let Some(before) = before {
            fs::remove_dir_all(self.path().join(before)).unwrap();
        }
    }
}
