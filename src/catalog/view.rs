//! The view of the catalog for one request. It includes the objects that were read from the API server for this
//! request.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::{Catalog, Coverage, Index, Kind, Lookups, Settings, Stored};
use crate::admission::TypedView;

/// A reference to an object by kind, namespace and name.
#[derive(Clone)]
pub struct Reference {
    /// The kind of the referenced object.
    pub kind: &'static Kind,
    /// The namespace of the referenced object; empty for cluster-scoped kinds.
    pub namespace: String,
    /// The name of the referenced object.
    pub name: String,
}

impl Reference {
    /// Creates a reference to an object. Ignores the namespace for cluster-scoped kinds.
    pub fn new(kind: &'static Kind, namespace: &str, name: &str) -> Self {
        Self { kind, namespace: kind.scope.namespace(namespace).to_owned(), name: name.to_owned() }
    }

    fn key(&self) -> (usize, &str, &str) {
        (std::ptr::from_ref(self.kind) as usize, &self.namespace, &self.name)
    }
}

impl PartialEq for Reference {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Reference {}

impl std::hash::Hash for Reference {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Debug for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind.full_name(), self.namespace, self.name)
    }
}

/// The result of a live read, which reads an object from the API server.
#[derive(Debug, Clone)]
pub enum LiveRead {
    /// The object exists.
    Exists(Arc<Stored>),
    /// The object does not exist.
    Gone,
    /// It is unknown whether the object exists, because the read failed or took too long. The message says why.
    Unknown(String),
}

/// The results of the reads from the API server for one request.
pub type LiveReads = HashMap<Reference, LiveRead>;

/// The catalog as one request sees it. Objects that were read from the API server for the request take precedence over
/// stored objects.
#[derive(Clone, Copy)]
pub struct View<'a> {
    catalog: &'a Catalog,
    live_reads: &'a LiveReads,
    settings: &'a Settings,
    shared: Option<&'a TypedView>,
    lookups: Option<&'a Lookups>,
}

impl<'a> View<'a> {
    /// Creates a view of `catalog`. If `live_reads` contains the result of reading an object from the API server, the
    /// view uses this result instead of the object in the catalog.
    pub fn new(catalog: &'a Catalog, live_reads: &'a LiveReads) -> Self {
        Self { catalog, live_reads, settings: Settings::NONE, shared: None, lookups: None }
    }

    /// Sets the sections of the configuration file that [`View::setting`] returns.
    #[must_use]
    pub fn under(self, settings: &'a Settings) -> Self {
        Self { settings, ..self }
    }

    /// Sets the cache in which [`View::once`] stores the value that it computes. All views of one request use the same
    /// cache, so the value is computed only once per request.
    #[must_use]
    pub fn sharing(self, shared: &'a TypedView) -> Self {
        Self { shared: Some(shared), ..self }
    }

    /// Sets the list in which the view remembers the objects that it finds in the catalog. All views of one decision
    /// share this list.
    #[must_use]
    pub fn remembering(self, lookups: &'a Lookups) -> Self {
        Self { lookups: Some(lookups), ..self }
    }

    /// Returns the value that `make` computes. If several rules need the same value for one request, `make` runs only
    /// once.
    ///
    /// For this, the view needs a cache (see [`View::sharing`]). The cache stores one value, the result of the first
    /// call. If a later call needs a value of another type, `make` runs on each such call.
    pub fn once<T: Any + Send + Sync + Clone>(&self, make: impl Fn() -> T) -> T {
        match self.shared {
            Some(shared) => shared.get_or_compute(make),
            None => make(),
        }
    }

    /// Returns the section of the configuration file with this name; `None` if it is not set.
    pub fn setting(&self, section: &str) -> Option<&'a Stored> {
        self.settings.section(section)
    }

    /// Returns the object with this namespace and name. If the object was read from the API server for this request,
    /// returns the result of the read: `None` if the object does not exist. If there was no read, or if it failed,
    /// returns the object in the catalog, if any.
    pub fn find(&self, kind: &'static Kind, namespace: &str, name: &str) -> Option<Arc<Stored>> {
        match self.live_read_of(kind, namespace, name) {
            Some(LiveRead::Exists(stored)) => Some(stored.clone()),
            Some(LiveRead::Gone) => None,
            Some(LiveRead::Unknown(_)) | None => self.find_stored(kind, namespace, name),
        }
    }

    fn find_stored(&self, kind: &'static Kind, namespace: &str, name: &str) -> Option<Arc<Stored>> {
        let Some(lookups) = self.lookups else { return self.catalog.find(kind, namespace, name) };
        lookups.find(kind, namespace, name).or_else(|| {
            let stored = self.catalog.find(kind, namespace, name)?;
            lookups.add(kind, &stored);
            Some(stored)
        })
    }

    fn is_stored(&self, kind: &'static Kind, namespace: &str, name: &str) -> bool {
        let is_remembered = self.lookups.is_some_and(|lookups| lookups.find(kind, namespace, name).is_some());
        is_remembered || self.catalog.contains(kind, namespace, name)
    }

    /// Returns the watched kinds that objects in the catalog declare. For example, CompositeResourceDefinitions declare
    /// kinds of composites.
    pub fn declared(&self) -> Vec<&'static Kind> {
        self.catalog.declared()
    }

    /// Returns whether the catalog contains every existing object of a kind.
    pub fn is_complete(&self, kind: &'static Kind) -> bool {
        self.catalog.coverage(kind) == Coverage::Complete
    }

    /// Returns whether the catalog has not yet received the complete list of the objects of a kind. If so, an object
    /// may exist although the catalog does not contain it. In `portcullis check`, a kind remains pending if the checked
    /// files may contain only some of its objects.
    pub fn is_pending(&self, kind: &'static Kind) -> bool {
        self.catalog.coverage(kind) == Coverage::Pending
    }

    /// Returns whether an object does not exist, according to a read from the API server or a complete list of its
    /// kind.
    pub fn is_missing(&self, kind: &'static Kind, namespace: &str, name: &str) -> bool {
        match self.live_read_of(kind, namespace, name) {
            Some(LiveRead::Gone) => true,
            Some(LiveRead::Exists(_)) => false,
            _ => self.is_complete(kind) && !self.is_stored(kind, namespace, name),
        }
    }

    /// Returns a reference to an object if the catalog does not contain the object, so that the caller can read it from
    /// the API server. The object may have been created after the last watch event. `None` if the catalog contains the
    /// object.
    pub fn unless_found(&self, kind: &'static Kind, namespace: &str, name: &str) -> Option<Reference> {
        (!self.is_stored(kind, namespace, name)).then(|| Reference::new(kind, namespace, name))
    }

    /// Returns at most `limit` objects in a namespace that the index `index` lists under `key`, sorted by name. Omits
    /// an object if a read from the API server for this request showed that it no longer exists. See
    /// [`Catalog::indexed`].
    pub fn indexed(
        &self,
        kind: &'static Kind,
        index: &'static Index,
        namespace: &str,
        key: &str,
        limit: usize,
    ) -> Vec<Arc<Stored>> {
        let gone = |stored: &Arc<Stored>| {
            matches!(self.live_read_of(kind, stored.namespace(), stored.name()), Some(LiveRead::Gone))
        };
        let mut found = self.catalog.indexed(kind, index, namespace, key, limit.saturating_add(self.live_reads.len()));
        found.retain(|stored| !gone(stored));
        found.truncate(limit);
        found
    }

    /// Returns at most `limit` objects that have the key `key` in the index `index`, from all namespaces. If an object
    /// was read from the API server for this request, returns the result of this read instead of the stored object. See
    /// [`Catalog::indexed_everywhere`].
    pub fn indexed_everywhere(
        &self,
        kind: &'static Kind,
        index: &'static Index,
        key: &str,
        limit: usize,
    ) -> Vec<Arc<Stored>> {
        let found = self.catalog.indexed_everywhere(kind, index, key, limit);
        found.iter().filter_map(|stored| self.find(kind, stored.namespace(), stored.name())).collect()
    }

    /// Returns the number of objects in a namespace that have the key `key` in the index `index`. Counts the objects in
    /// the catalog, and ignores the results of live reads.
    pub fn count(&self, kind: &'static Kind, index: &'static Index, namespace: &str, key: &str) -> usize {
        self.catalog.count(kind, index, namespace, key)
    }

    /// Returns the result of the live read of an object; `None` if there was no live read.
    pub fn live_read(&self, reference: &Reference) -> Option<&'a LiveRead> {
        self.live_reads.get(reference)
    }

    fn live_read_of(&self, kind: &'static Kind, namespace: &str, name: &str) -> Option<&'a LiveRead> {
        if self.live_reads.is_empty() {
            return None;
        }
        self.live_reads.get(&Reference::new(kind, namespace, name))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_view_of_a_request_computes_once() {
        let (catalog, live_reads, shared) = (Catalog::of(&[], Vec::new()), LiveReads::new(), TypedView::default());
        let made = Cell::new(0);
        let make = || made.replace(made.get() + 1);
        let view = View::new(&catalog, &live_reads);
        assert_eq!((view.once(make), view.once(make)), (0, 1));
        let view = view.sharing(&shared);
        assert_eq!((view.once(make), view.once(make), made.get()), (2, 2, 3));
    }
}
