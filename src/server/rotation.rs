//! Following a folder of certificates as it changes.
//!
//! Whoever waits for a write to `tls.crt` never sees a Secret mount rotate: the kubelet writes a new folder and renames
//! a link. So the folder is watched, and polled too, as not every file system tells of its changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;
use tokio::task;
use tokio::time::{sleep, timeout};

use super::certificates::{CertificateError, Certificates, Files, Pair};
use super::metrics::{Metrics, Reload};

/// Writers that are no kubelet write one file after the other: let them finish, or every rotation logs an error.
const SETTLE: Duration = Duration::from_millis(50);

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
    let changed = Arc::new(Notify::new());
    let _watcher = watch(&folder, Arc::clone(&changed));
    // The start-up has loaded these already, unless they changed since: then loading them again is right.
    let mut seen = None;
    loop {
        seen = check(&folder, seen, &certificates, &metrics).await;
        // A change and the poll lead to the same; a permit that is stored in between is not lost.
        if timeout(every, changed.notified()).await.is_ok() {
            sleep(SETTLE).await;
        }
    }
}

fn watch(folder: &Path, changed: Arc<Notify>) -> Option<RecommendedWatcher> {
    let tell = move |event: notify::Result<Event>| {
        if event.map_or(true, |event| changes(event.kind)) {
            changed.notify_one();
        }
    };
    let watcher = notify::recommended_watcher(tell).and_then(|mut watcher| {
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    watcher.inspect_err(|error| tracing::warn!(folder = %folder.display(), %error, "certificates are polled only")).ok()
}

/// Opening a file to read is an event too: without this each look at the folder would lead to the next.
fn changes(kind: EventKind) -> bool {
    !kind.is_access() || kind == EventKind::Access(AccessKind::Close(AccessMode::Write))
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
