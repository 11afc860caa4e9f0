//! Changes of the catalog, for those who act on them.

use std::sync::Arc;

use super::{Catalog, Coverage, Kind, Reference, Stored};

/// A change of one object, as the watches told of it.
#[derive(Debug, Clone)]
pub struct Change {
    /// The object's kind.
    pub kind: &'static Kind,
    /// What it was; `None` for one that was not known.
    pub before: Option<Arc<Stored>>,
    /// What it is; `None` for one that is gone.
    pub now: Option<Arc<Stored>>,
}

impl Change {
    /// Names the object.
    pub fn reference(&self) -> Reference {
        let stored = self.now.as_ref().or(self.before.as_ref());
        let (namespace, name) = stored.map_or(("", ""), |stored| (stored.namespace(), stored.name()));
        Reference::new(self.kind, namespace, name)
    }
}

/// Told of every change, after the catalog has it. Runs in the watch, so it must be quick.
pub trait Observe: Send + Sync {
    /// An object changed, came or went.
    fn changed(&self, change: &Change, catalog: &Catalog);

    /// How much is known of a kind changed, or its objects were listed again.
    fn covered(&self, kind: &'static Kind, coverage: Coverage) {
        let _ = (kind, coverage);
    }
}
