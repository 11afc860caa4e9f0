//! The objects that one decision has looked up in the catalog.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Kind, Stored};

/// Maximum number of objects that [`Lookups`] remembers. Most decisions look up fewer objects, several times each.
/// Decisions that look up more, such as those about kustomize trees, rarely look up an object again.
const MAX_FOUND: usize = 16;

/// The objects that one decision has found in the catalog. Several rules look up the same object, and a search among
/// few objects is faster than a look-up in the catalog. In addition, all rules get the same version of the object.
#[derive(Debug, Default)]
pub struct Lookups {
    found: Mutex<Vec<(&'static Kind, Arc<Stored>)>>,
}

impl Lookups {
    /// Returns the object with this namespace and name, if an earlier look-up of this decision has remembered it.
    /// Otherwise, returns `None` without a search in the catalog.
    pub(super) fn find(&self, kind: &'static Kind, namespace: &str, name: &str) -> Option<Arc<Stored>> {
        let namespace = kind.scope.namespace(namespace);
        let found = self.found();
        let is_it = |(of, stored): &&(&Kind, Arc<Stored>)| {
            std::ptr::eq(*of, kind) && stored.name() == name && stored.namespace() == namespace
        };
        found.iter().find(is_it).map(|(_, stored)| Arc::clone(stored))
    }

    /// Remembers an object from the catalog, so that later calls of [`Lookups::find`] return it. Does nothing if
    /// [`MAX_FOUND`] objects are already remembered.
    pub(super) fn add(&self, kind: &'static Kind, stored: &Arc<Stored>) {
        let mut found = self.found();
        if found.len() < MAX_FOUND {
            found.push((kind, Arc::clone(stored)));
        }
    }

    fn found(&self) -> MutexGuard<'_, Vec<(&'static Kind, Arc<Stored>)>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Catalog, LiveRead, LiveReads, NAMESPACES, Reference, View};
    use super::*;

    fn namespace(name: &str) -> serde_json::Value {
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    }

    #[test]
    fn a_decision_keeps_the_version_that_it_found_first() {
        let catalog = Catalog::of([&NAMESPACES], vec![namespace("a")]);
        let (live_reads, lookups) = (LiveReads::new(), Lookups::default());
        let view = View::new(&catalog, &live_reads).remembering(&lookups);
        let first = view.find(&NAMESPACES, "ignored", "a").unwrap();
        assert!(view.find(&NAMESPACES, "", "b").is_none() && view.unless_found(&NAMESPACES, "", "b").is_some());
        catalog.remove(&NAMESPACES, "", "a");
        catalog.insert(&NAMESPACES, namespace("b"));
        assert!(Arc::ptr_eq(&first, &view.find(&NAMESPACES, "", "a").unwrap()));
        assert!(!view.is_missing(&NAMESPACES, "", "a") && view.unless_found(&NAMESPACES, "", "a").is_none());
        assert!(view.find(&NAMESPACES, "", "b").is_some(), "an object that was not found is looked up again");
        assert!(View::new(&catalog, &live_reads).find(&NAMESPACES, "", "a").is_none());
    }

    #[test]
    fn a_live_read_takes_precedence() {
        let catalog = Catalog::of([&NAMESPACES], vec![namespace("a")]);
        let (none, lookups) = (LiveReads::new(), Lookups::default());
        assert!(View::new(&catalog, &none).remembering(&lookups).find(&NAMESPACES, "", "a").is_some());
        let gone = LiveReads::from([(Reference::new(&NAMESPACES, "", "a"), LiveRead::Gone)]);
        let view = View::new(&catalog, &gone).remembering(&lookups);
        assert!(view.find(&NAMESPACES, "", "a").is_none() && view.is_missing(&NAMESPACES, "", "a"));
    }

    #[test]
    fn the_number_of_remembered_objects_is_limited() {
        let names: Vec<_> = (0..2 * MAX_FOUND).map(|number| number.to_string()).collect();
        let catalog = Catalog::of([&NAMESPACES], names.iter().map(|name| namespace(name)).collect());
        let (live_reads, lookups) = (LiveReads::new(), Lookups::default());
        let view = View::new(&catalog, &live_reads).remembering(&lookups);
        for name in names.iter().chain(&names) {
            assert_eq!(view.find(&NAMESPACES, "", name).unwrap().name(), name);
        }
        assert_eq!(lookups.found().len(), MAX_FOUND);
    }
}
