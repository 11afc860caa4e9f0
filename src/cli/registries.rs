//! The arguments for access to OCI registries.

use std::path::PathBuf;
use std::time::Duration;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::Unusable;
use crate::landscaper::components::cache::{ComponentCache, Freshness};
use crate::oci::{Client, Mirror, Options};

/// The arguments for access to OCI registries.
#[derive(Debug, clap::Args)]
pub(super) struct Registries {
    /// Additional trusted CAs of registries, in PEM; may be repeated
    #[arg(long, value_name = "FILE")]
    registry_ca: Vec<PathBuf>,
    /// A mirror of a registry: example.org=https://mirror.example/path; may be repeated
    #[arg(long, value_name = "HOST=URL")]
    registry_mirror: Vec<Mirror>,
    /// Timeout for a response of a registry, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=60))]
    registry_timeout: u64,
}

impl Registries {
    /// Creates an empty component cache. It uses these arguments when it loads components from OCI registries.
    pub(super) fn component_cache(&self) -> Result<ComponentCache, Unusable> {
        let mut authorities = Vec::new();
        for path in &self.registry_ca {
            let unusable = |why: String| Unusable::because(format!("--registry-ca {}", path.display()), why);
            let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let read = read.map_err(|error| unusable(error.to_string()))?;
            if read.is_empty() {
                return Err(unusable("it contains no certificate".to_owned()));
            }
            authorities.extend(read);
        }
        let options = Options { authorities, within: Duration::from_secs(self.registry_timeout) };
        let client = Client::new(&options).map_err(|error| Unusable::because("--registry-ca", error))?;
        Ok(ComponentCache::new(client, Freshness::default()).mirrored(self.registry_mirror.clone()))
    }
}
