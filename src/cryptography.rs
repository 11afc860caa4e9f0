//! The cryptography of TLS: ring, whoever speaks.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};

/// What rustls takes for everything that is worked out.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Makes it that of the whole process, for kube's client, which asks for no other.
pub(crate) fn install() {
    // Only fails where a provider is installed already, which is then as good.
    let _ = ring::default_provider().install_default();
}
