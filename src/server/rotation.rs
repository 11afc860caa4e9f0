//! Watches the serving certificate and the clients' CA, and reloads them when their files change.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::server::danger::ClientCertVerifier;
use tokio::task;

use super::certificates::{CertificateError, Certificates, Files, Pair};
use super::clients::{Authorities, Clients};
use super::metrics::{Metrics, Reload};
use crate::process::Changes;

/// The state of the watched files at the last check, so that each change is loaded and logged once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// The files could be read. The number is a fingerprint of their contents.
    Contents(u64),
    /// At least one of the watched files could not be read.
    Nothing,
}

/// A set of files that is watched for changes, such as a certificate and its key.
trait Watched: Send + Sync + 'static {
    /// The parsed contents of the files, such as a certificate with its key.
    type Loaded: Send + 'static;

    /// Returns the folder that contains the watched files, such as `tls.crt` and `tls.key`.
    fn folder(&self) -> &Path;

    /// Reads the files, and returns their state. If the state differs from `seen`, also returns the parsed contents or
    /// an error. Blocks the thread.
    fn load(&self, seen: Option<Seen>) -> (Seen, Option<Result<Self::Loaded, CertificateError>>);

    /// Replaces the data in use, such as the serving certificate, with `loaded`, the newly parsed contents of the
    /// files.
    fn install(&self, loaded: Self::Loaded);

    /// Logs and counts an error of reading or parsing the files.
    fn fail(&self, error: &CertificateError);
}

/// Reloads the serving certificate whenever its files change. Never returns. `every` is the interval at which the files
/// are checked in addition to file system events. If the new files cannot be loaded, the old certificate stays in use.
pub(super) async fn watch_certificate(
    folder: PathBuf,
    certificates: Arc<Certificates>,
    metrics: Arc<Metrics>,
    every: Duration,
) {
    watch_files(Arc::new(Serving { folder, certificates, metrics }), every).await;
}

/// Reloads the CAs of client certificates whenever their file changes. Never returns. `every` is the interval at which
/// the file is checked in addition to file system events. If the new file cannot be loaded, the old CAs stay in use.
pub(super) async fn watch_clients(clients: Arc<Clients>, metrics: Arc<Metrics>, every: Duration) {
    let folder = clients.file().parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).to_owned();
    watch_files(Arc::new(ClientCa { folder, clients, metrics }), every).await;
}

async fn watch_files(files: Arc<impl Watched>, every: Duration) {
    let changes = Changes::of(files.folder(), every);
    // The start-up has loaded these files, but they may have changed since, so the first check loads them again.
    let mut seen = None;
    loop {
        seen = check(&files, seen).await;
        changes.next().await;
    }
}

async fn check<F: Watched>(files: &Arc<F>, seen: Option<Seen>) -> Option<Seen> {
    let loading = Arc::clone(files);
    let Ok((now, loaded)) = task::spawn_blocking(move || loading.load(seen)).await else { return seen };
    match loaded {
        None => {}
        Some(Ok(loaded)) => files.install(loaded),
        Some(Err(error)) => files.fail(&error),
    }
    Some(now)
}

/// The files of the serving certificate, watched for changes.
struct Serving {
    folder: PathBuf,
    certificates: Arc<Certificates>,
    metrics: Arc<Metrics>,
}

impl Watched for Serving {
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
        tracing::info!(%folder, expires, "serving a new certificate");
    }

    fn fail(&self, error: &CertificateError) {
        self.metrics.reloaded(Reload::Failed);
        tracing::error!(%error, "cannot load the new certificate; still serving the old one");
    }
}

/// The client CA file, watched for changes. It contains the CAs of client certificates.
struct ClientCa {
    folder: PathBuf,
    clients: Arc<Clients>,
    metrics: Arc<Metrics>,
}

impl Watched for ClientCa {
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
        tracing::info!(file = %self.clients.file().display(), "loaded a new client CA");
    }

    fn fail(&self, error: &CertificateError) {
        self.metrics.client_ca_reloaded(Reload::Failed);
        tracing::error!(%error, "cannot load the new client CA; still using the old one");
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
