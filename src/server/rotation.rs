//! Following a folder of certificates as it changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::task;

use super::certificates::{CertificateError, Certificates, Files, Pair};
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

/// Follows `folder` for ever: each change is loaded, and where it cannot be, the old pair stays.
pub(super) async fn follow(folder: PathBuf, certificates: Arc<Certificates>, metrics: Arc<Metrics>, every: Duration) {
    let changes = Changes::of(&folder, every);
    // The start-up has loaded these already, unless they changed since: then loading them again is right.
    let mut seen = None;
    loop {
        seen = check(&folder, seen, &certificates, &metrics).await;
        changes.next().await;
    }
}

async fn check(folder: &Path, seen: Option<Seen>, certificates: &Certificates, metrics: &Metrics) -> Option<Seen> {
    let owned = folder.to_owned();
    let Ok((now, loaded)) = task::spawn_blocking(move || load(&owned, seen)).await else { return seen };
    match loaded {
        None => {}
        Some(Ok(pair)) => install(folder, pair, certificates, metrics),
        Some(Err(error)) => {
            metrics.reloaded(Reload::Failed);
            tracing::error!(%error, "the new certificate is not served; the one before stays");
        }
    }
    Some(now)
}

fn install(folder: &Path, pair: Pair, certificates: &Certificates, metrics: &Metrics) {
    if certificates.serves(&pair) {
        return;
    }
    certificates.replace(pair);
    metrics.reloaded(Reload::Loaded);
    tracing::info!(folder = %folder.display(), expires = certificates.expires(), "a new certificate is served");
}

/// What stands for the folder's contents, and where that is not what was `seen`, the pair in it.
fn load(folder: &Path, seen: Option<Seen>) -> (Seen, Option<Result<Pair, CertificateError>>) {
    let (now, files) = match Files::read(folder) {
        Ok(files) => (Seen::Contents(files.fingerprint()), Ok(files)),
        Err(error) => (Seen::Nothing, Err(error)),
    };
    let loaded = (seen != Some(now)).then(|| files.and_then(|files| files.parse()));
    (now, loaded)
}
