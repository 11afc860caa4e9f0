//! Waiting for a folder to change.
//!
//! Whoever waits for a write to one file never sees a Secret or a ConfigMap mount change: the kubelet writes a new folder
//! and renames a link. So the folder is watched, and polled too, as not every file system tells of its changes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

/// Writers that are no kubelet write one file after the other: let them finish, or every change logs an error.
const SETTLE: Duration = Duration::from_millis(50);

/// The changes of a folder.
#[derive(Debug)]
pub struct Changes {
    changed: Arc<Notify>,
    every: Duration,
    _watcher: Option<RecommendedWatcher>,
}

impl Changes {
    /// Those of what stands in `folder`, which is looked at `every` so often whether or not it tells of any.
    pub fn of(folder: &Path, every: Duration) -> Self {
        let changed = Arc::new(Notify::new());
        let _watcher = watch(folder, Arc::clone(&changed));
        Self { changed, every, _watcher }
    }

    /// Waits until it is time to look again.
    pub async fn next(&self) {
        // A change and the poll lead to the same; a permit that is stored in between is not lost.
        if timeout(self.every, self.changed.notified()).await.is_ok() {
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
    watcher.inspect_err(|error| tracing::warn!(folder = %folder.display(), %error, "changes are polled only")).ok()
}

/// Opening a file to read is an event too: without this each look at the folder would lead to the next.
fn changes(kind: EventKind) -> bool {
    !kind.is_access() || kind == EventKind::Access(AccessKind::Close(AccessMode::Write))
}
