//! Notifications of changes in the catalog, for controllers and recordings.

use std::sync::Arc;

use super::{Catalog, Coverage, Kind, Reference, Stored};

/// A change of one object in the catalog: created, updated or deleted.
#[derive(Debug, Clone)]
pub struct Change {
    /// The kind of the changed object.
    pub kind: &'static Kind,
    /// The object before the change; `None` if it was created.
    pub before: Option<Arc<Stored>>,
    /// The object after the change; `None` if it was deleted.
    pub now: Option<Arc<Stored>>,
}

impl Change {
    /// Returns the kind, namespace and name of the changed object.
    pub fn reference(&self) -> Reference {
        let stored = self.now.as_ref().or(self.before.as_ref());
        let (namespace, name) = stored.map_or(("", ""), |stored| (stored.namespace(), stored.name()));
        Reference::new(self.kind, namespace, name)
    }
}

/// An observer of changes in the catalog. The catalog calls the methods of the observer synchronously after each
/// change, so the methods must return quickly.
pub trait Observe: Send + Sync {
    /// Receives a change of an object in the catalog: the object was created, changed or deleted.
    fn changed(&self, change: &Change, catalog: &Catalog);

    /// Receives the new coverage of a Kubernetes kind. The coverage says whether the catalog contains all objects of
    /// this kind in the cluster. For example, it becomes `Complete` when the objects were listed for the first time.
    fn covered(&self, kind: &'static Kind, coverage: Coverage) {
        let _ = (kind, coverage);
    }
}
