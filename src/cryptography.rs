//! The crypto provider of all TLS connections: ring.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};

/// Returns the crypto provider for rustls.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Sets the default crypto provider of the process, because kube's client uses the default.
pub(crate) fn install() {
    // This fails only if a provider is already installed.
    let _ = ring::default_provider().install_default();
}
