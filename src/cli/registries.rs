//! How the commands that read component descriptors reach OCI registries.

use std::path::PathBuf;
use std::time::Duration;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::Unusable;
use crate::landscaper::components::cache::{ComponentCache, Freshness};
use crate::oci::{Client, Mirror, Options};

/// How OCI registries are reached.
#[derive(Debug, clap::Args)]
pub(super) struct Registries {
    /// Certificates of authorities that registries are trusted by, besides the system's, in PEM; may be said several times
    #[arg(long, value_name = "FILE")]
    registry_ca: Vec<PathBuf>,
    /// A registry that is read in place of another: example.org=https://mirror.example/path; may be said several times
    #[arg(long, value_name = "HOST=URL")]
    registry_mirror: Vec<Mirror>,
    /// Seconds that a registry has for an answer
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=60))]
    registry_timeout: u64,
}

impl Registries {
    /// What is known of component versions: nothing yet.
    pub(super) fn component_cache(&self) -> Result<ComponentCache, Unusable> {
        let mut authorities = Vec::new();
        for path in &self.registry_ca {
            let unusable = |why: String| Unusable::because(format!("--registry-ca {}", path.display()), why);
            let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let read = read.map_err(|error| unusable(error.to_string()))?;
            if read.is_empty() {
                return Err(unusable("it holds no certificate".to_owned()));
            }
            authorities.extend(read);
        }
        let options = Options { authorities, within: Duration::from_secs(self.registry_timeout) };
        let client = Client::new(&options).map_err(|error| Unusable::because("--registry-ca", error))?;
        Ok(ComponentCache::new(client, Freshness::default()).mirrored(self.registry_mirror.clone()))
    }
}
