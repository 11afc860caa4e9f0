//! Changes of the catalog, for controllers and recordings.

use std::sync::Arc;

use super::{Catalog, Coverage, Kind, Reference, Stored};

/// A change of one object.
#[derive(Debug, Clone)]
pub struct Change {
    /// The object's kind.
    pub kind: &'static Kind,
    /// The object before; `None` for a new one.
    pub before: Option<Arc<Stored>>,
    /// The object now; `None` for a deleted one.
    pub now: Option<Arc<Stored>>,
}

impl Change {
    /// Returns the reference to the object.
    pub fn reference(&self) -> Reference {
        let stored = self.now.as_ref().or(self.before.as_ref());
        let (namespace, name) = stored.map_or(("", ""), |stored| (stored.namespace(), stored.name()));
        Reference::new(self.kind, namespace, name)
    }
}

/// An observer of the catalog. Its methods run in the watch after the change, so they must be quick.
pub trait Observe: Send + Sync {
    /// Handles a created, changed or deleted object.
    fn changed(&self, change: &Change, catalog: &Catalog);

    /// Handles the end of a listing of a kind.
    fn covered(&self, kind: &'static Kind, coverage: Coverage) {
        let _ = (kind, coverage);
    }
}
