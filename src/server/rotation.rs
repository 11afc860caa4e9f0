//! Following files as they change: the folder of certificates, and the CA of clients.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::server::danger::ClientCertVerifier;
use tokio::task;

use super::certificates::{CertificateError, Certificates, Files, Pair};
use super::clients::{Authorities, Clients};
use super::metrics::{Metrics, Reload};
use crate::process::Changes;

/// What was last tried, so that each change is tried and told of once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// Files with this fingerprint.
    Contents(u64),
    /// Files that could not be read.
    Nothing,
}

/// Files that are followed.
trait Followed: Send + Sync + 'static {
    /// What is made of them.
    type Loaded: Send + 'static;

    /// The folder that they are in.
    fn folder(&self) -> &Path;

    /// What stands for their contents, and where that is not what was `seen`, what is made of them. Blocks.
    fn load(&self, seen: Option<Seen>) -> (Seen, Option<Result<Self::Loaded, CertificateError>>);

    /// Uses what was made of them from now on.
    fn install(&self, loaded: Self::Loaded);

    /// Tells of contents that cannot be used.
    fn fail(&self, error: &CertificateError);
}

/// Follows the folder of certificates for ever: each change is loaded, and where it cannot be, the old pair stays.
pub(super) async fn follow(folder: PathBuf, certificates: Arc<Certificates>, metrics: Arc<Metrics>, every: Duration) {
    follow_files(Arc::new(Serving { folder, certificates, metrics }), every).await;
}

/// Follows the CA of clients for ever: each change is loaded, and where it cannot be, the old CA stays.
pub(super) async fn follow_clients(clients: Arc<Clients>, metrics: Arc<Metrics>, every: Duration) {
    let folder = clients.file().parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).to_owned();
    follow_files(Arc::new(ClientCa { folder, clients, metrics }), every).await;
}

async fn follow_files(files: Arc<impl Followed>, every: Duration) {
    let changes = Changes::of(files.folder(), every);
    // The start-up has loaded these already, unless they changed since: then loading them again is right.
    let mut seen = None;
    loop {
        seen = check(&files, seen).await;
        changes.next().await;
    }
}

async fn check<F: Followed>(files: &Arc<F>, seen: Option<Seen>) -> Option<Seen> {
    let loading = Arc::clone(files);
    let Ok((now, loaded)) = task::spawn_blocking(move || loading.load(seen)).await else { return seen };
    match loaded {
        None => {}
        Some(Ok(loaded)) => files.install(loaded),
        Some(Err(error)) => files.fail(&error),
    }
    Some(now)
}

/// The certificate that is served.
struct Serving {
    folder: PathBuf,
    certificates: Arc<Certificates>,
    metrics: Arc<Metrics>,
}

impl Followed for Serving {
    type Loaded = Pair;

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn load(&self, seen: Option<Seen>) -> (Seen, Option<Result<Pair, CertificateError>>) {
        load(seen, Files::read(&self.folder), Files::fingerprint, Files::parse)
    }

    fn install(&self, pair: Pair) {
        if self.certificates.serves(&pair) {
            return;
        }
        self.certificates.replace(pair);
        self.metrics.reloaded(Reload::Loaded);
        let (folder, expires) = (self.folder.display(), self.certificates.expires());
        tracing::info!(%folder, expires, "a new certificate is served");
    }

    fn fail(&self, error: &CertificateError) {
        self.metrics.reloaded(Reload::Failed);
        tracing::error!(%error, "the new certificate is not served; the one before stays");
    }
}

/// The CA whose clients are taken.
struct ClientCa {
    folder: PathBuf,
    clients: Arc<Clients>,
    metrics: Arc<Metrics>,
}

impl Followed for ClientCa {
    type Loaded = Arc<dyn ClientCertVerifier>;

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn load(&self, seen: Option<Seen>) -> (Seen, Option<Result<Self::Loaded, CertificateError>>) {
        load(seen, Authorities::read(self.clients.file()), Authorities::fingerprint, Authorities::verifier)
    }

    fn install(&self, verifier: Self::Loaded) {
        self.clients.replace(verifier);
        self.metrics.client_ca_reloaded(Reload::Loaded);
        tracing::info!(file = %self.clients.file().display(), "clients of this CA are taken");
    }

    fn fail(&self, error: &CertificateError) {
        self.metrics.client_ca_reloaded(Reload::Failed);
        tracing::error!(%error, "the new CA of clients is not used; the one before stays");
    }
}

fn load<F, T>(
    seen: Option<Seen>,
    read: Result<F, CertificateError>,
    fingerprint: impl FnOnce(&F) -> u64,
    parse: impl FnOnce(&F) -> Result<T, CertificateError>,
) -> (Seen, Option<Result<T, CertificateError>>) {
    let now = read.as_ref().map_or(Seen::Nothing, |files| Seen::Contents(fingerprint(files)));
    let loaded = (seen != Some(now)).then(|| read.and_then(|files| parse(&files)));
    (now, loaded)
}
