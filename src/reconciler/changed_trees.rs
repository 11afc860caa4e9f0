//! Collects Flux Kustomizations whose kustomize trees have become broken, or have been repaired, so that they are
//! audited again before the next audit of the whole cluster.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::catalog::Reference;

/// Maximum number of Flux Kustomizations in the set of objects to audit again. A cluster usually has fewer
/// Kustomizations. If the set is full, further Kustomizations are audited only in the next audit of the whole cluster.
const CAPACITY: usize = 20_000;

/// A set of objects to audit again. One task waits for objects and takes them out of the set.
#[derive(Default)]
pub(super) struct ChangedTrees {
    objects: Mutex<HashSet<Reference>>,
    notify: Notify,
}

impl ChangedTrees {
    /// Adds objects to the set, and wakes the task that waits for them. Objects beyond the limit [`CAPACITY`] are
    /// ignored.
    pub(super) fn add(&self, changed: impl IntoIterator<Item = Reference>) {
        let mut objects = self.objects();
        let room = CAPACITY.saturating_sub(objects.len());
        objects.extend(changed.into_iter().take(room));
        self.notify.notify_one();
    }

    /// Waits until the set contains at least one object.
    pub(super) async fn wait(&self) {
        while self.objects().is_empty() {
            self.notify.notified().await;
        }
    }

    /// Removes all objects from the set, and returns them in no particular order.
    pub(super) fn take(&self) -> Vec<Reference> {
        std::mem::take(&mut *self.objects()).into_iter().collect()
    }

    /// Locks the set of objects to audit again. Uses the set even if a thread panicked while it held the lock. Each
    /// change of the set is a single call, so the set is still consistent.
    fn objects(&self) -> MutexGuard<'_, HashSet<Reference>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;
    use crate::catalog::NAMESPACES;

    #[test]
    fn wakes_the_task_once_and_keeps_every_object() {
        let (trees, object) = (ChangedTrees::default(), |name| Reference::new(&NAMESPACES, "", name));
        let is_waiting = || trees.wait().now_or_never().is_none();
        assert!(is_waiting());
        trees.add([object("a")]);
        trees.add([object("a"), object("b")]);
        assert!(!is_waiting(), "nothing was taken yet");
        assert_eq!(trees.take().len(), 2);
        assert!(is_waiting(), "all were taken");
    }
}
