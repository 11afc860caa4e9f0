//! `portcullis certs`: creates a CA and a serving certificate for development.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256,
};
use time::{Duration, OffsetDateTime};

use super::{OK, Unusable, say};

/// Create a development CA and a serving certificate.
///
/// Writes ca.crt, ca.key, tls.crt and tls.key. If the output folder already contains a CA, the command reuses this CA
/// and replaces only the serving certificate.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The output folder
    #[arg(long, short, value_name = "DIR", default_value = "certs/dev")]
    out: PathBuf,
    /// A host name or address of the server; may be repeated
    #[arg(long = "host", value_name = "HOST", default_values_t = ["localhost".to_owned(), "127.0.0.1".to_owned()])]
    hosts: Vec<String>,
    /// Validity of the serving certificate in days; the CA is valid ten times as long
    #[arg(long, default_value_t = 90)]
    days: u16,
}

const CA_NAME: &str = "portcullis development CA";
/// How far `notBefore` of a new certificate is in the past. Machines whose clocks are slightly slow therefore accept
/// the certificate immediately.
const BACKDATED: Duration = Duration::minutes(5);

pub(super) fn run(args: &Args) -> Result<u8, Unusable> {
    let made = |error: rcgen::Error| Unusable::because("cannot create the certificate", error);
    fs::create_dir_all(&args.out).map_err(|error| Unusable::because(args.out.display(), error))?;
    let (ca_crt, ca_key) = (args.out.join("ca.crt"), args.out.join("ca.key"));
    if !ca_crt.exists() || !ca_key.exists() {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(made)?;
        let certificate = ca_params(args.days).self_signed(&key).map_err(made)?;
        write(&ca_key, &key.serialize_pem(), 0o600)?;
        write(&ca_crt, &certificate.pem(), 0o644)?;
    }
    let issuer_key = KeyPair::from_pem(&read(&ca_key)?).map_err(|error| Unusable::because(ca_key.display(), error))?;
    let issuer = Issuer::from_ca_cert_pem(&read(&ca_crt)?, issuer_key)
        .map_err(|error| Unusable::because(ca_crt.display(), error))?;
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(made)?;
    let leaf = leaf_params(args).map_err(made)?.signed_by(&key, &issuer).map_err(made)?;
    write(&args.out.join("tls.key"), &key.serialize_pem(), 0o600)?;
    write(&args.out.join("tls.crt"), &leaf.pem(), 0o644)?;
    let hosts = args.hosts.join(", ");
    say(&format!("{}: created a certificate for {hosts}, valid for {} days\n", args.out.display(), args.days));
    Ok(OK)
}

fn ca_params(days: u16) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, CA_NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    valid_for(&mut params, Duration::days(i64::from(days) * 10));
    params
}

fn leaf_params(args: &Args) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(args.hosts.clone())?;
    params.distinguished_name.push(DnType::CommonName, "portcullis");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    valid_for(&mut params, Duration::days(i64::from(args.days)));
    Ok(params)
}

/// Sets the validity of a certificate: it ends `length` from now. By default, certificates of rcgen are valid until the
/// year 4096.
fn valid_for(params: &mut CertificateParams, length: Duration) {
    let now = OffsetDateTime::now_utc();
    params.not_before = now - BACKDATED;
    params.not_after = now + length;
}

fn read(path: &Path) -> Result<String, Unusable> {
    fs::read_to_string(path).map_err(|error| Unusable::because(path.display(), error))
}

/// Writes `text` to a file with the permissions `mode`. Writes to a temporary file first and renames it, so that a
/// server that watches the folder never reads a partial file.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), Unusable> {
    let beside = path.with_extension("new");
    let written = || {
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&beside)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&beside, path)
    };
    written().map_err(|error: std::io::Error| Unusable::because(path.display(), error))
}
