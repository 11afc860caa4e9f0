//! Watches a folder for changes.
//!
//! A watch of a single file misses updates of a Secret or ConfigMap volume: the kubelet writes a new folder and renames
//! a symbolic link. Therefore the folder is watched. It is also polled, because not every file system supports
//! notifications.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

/// Time to wait after the notification of a change, before the change is reported. Writers other than the kubelet may
/// write several files one after the other. Without the wait, an incomplete set of files would be logged as an error.
const SETTLE: Duration = Duration::from_millis(50);

/// A watch of a folder, which reports changes of its files.
#[derive(Debug)]
pub struct Changes {
    changed: Arc<Notify>,
    every: Duration,
    _watcher: Option<RecommendedWatcher>,
}

impl Changes {
    /// Starts watching `folder`. Also polls the folder at the interval `every`.
    pub fn of(folder: &Path, every: Duration) -> Self {
        let changed = Arc::new(Notify::new());
        let _watcher = watch(folder, Arc::clone(&changed));
        Self { changed, every, _watcher }
    }

    /// Waits until the folder may have changed: after a notification or the polling interval.
    pub async fn next(&self) {
        // A notification between two calls is stored as a permit, so none is lost.
        if timeout(self.every, self.changed.notified()).await.is_ok() {
            sleep(SETTLE).await;
        }
    }
}

fn watch(folder: &Path, changed: Arc<Notify>) -> Option<RecommendedWatcher> {
    let notify = move |event: notify::Result<Event>| {
        if event.map_or(true, |event| changes(event.kind)) {
            changed.notify_one();
        }
    };
    let watcher = notify::recommended_watcher(notify).and_then(|mut watcher| {
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    watcher
        .inspect_err(
            |error| tracing::warn!(folder = %folder.display(), %error, "cannot watch the folder; polling only"),
        )
        .ok()
}

/// Returns whether a file system event may be a change of a file. Ignores events about reads, because the caller reads
/// the files after each event. Otherwise, each of these reads would cause another event.
fn changes(kind: EventKind) -> bool {
    !kind.is_access() || kind == EventKind::Access(AccessKind::Close(AccessMode::Write))
}
