//! How rules read the catalog.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::{Catalog, Coverage, Index, Kind, Settings, Stored};

/// Names an object.
#[derive(Clone)]
pub struct Reference {
    /// Its kind.
    pub kind: &'static Kind,
    /// Its namespace; ignored for cluster-scoped kinds.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Reference {
    /// Names an object.
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

/// What the API server said of an object.
#[derive(Debug, Clone)]
pub enum Confirmation {
    /// It is there.
    Exists(Arc<Stored>),
    /// It is not there.
    Gone,
    /// The API server could not be asked in time; why.
    Unknown(String),
}

/// The objects that were confirmed for one request.
pub type Confirmed = HashMap<Reference, Confirmation>;

/// The catalog as one request sees it: what was confirmed goes before what the watches say.
#[derive(Clone, Copy)]
pub struct View<'a> {
    catalog: &'a Catalog,
    confirmed: &'a Confirmed,
    settings: &'a Settings,
}

impl<'a> View<'a> {
    /// A view of `catalog` with `confirmed` over it.
    pub fn new(catalog: &'a Catalog, confirmed: &'a Confirmed) -> Self {
        Self { catalog, confirmed, settings: Settings::NONE }
    }

    /// The view under a configuration.
    #[must_use]
    pub fn under(self, settings: &'a Settings) -> Self {
        Self { settings, ..self }
    }

    /// What the configuration says in a section.
    pub fn setting(&self, section: &str) -> Option<&'a Stored> {
        self.settings.section(section)
    }

    /// The object of that name.
    pub fn find(&self, kind: &'static Kind, namespace: &str, name: &str) -> Option<Arc<Stored>> {
        match self.confirmation(&Reference::new(kind, namespace, name)) {
            Some(Confirmation::Exists(stored)) => Some(stored.clone()),
            Some(Confirmation::Gone) => None,
            Some(Confirmation::Unknown(_)) | None => self.catalog.find(kind, namespace, name),
        }
    }

    /// The kinds that objects in the catalog declare, and that are looked at.
    pub fn declared(&self) -> Vec<&'static Kind> {
        self.catalog.declared()
    }

    /// Whether that an object is not found means that it does not exist.
    pub fn is_complete(&self, kind: &'static Kind) -> bool {
        self.catalog.coverage(kind) == Coverage::Complete
    }

    /// Whether an object is known not to exist.
    pub fn is_missing(&self, kind: &'static Kind, namespace: &str, name: &str) -> bool {
        match self.confirmation(&Reference::new(kind, namespace, name)) {
            Some(Confirmation::Gone) => true,
            Some(Confirmation::Exists(_)) => false,
            _ => self.is_complete(kind) && !self.catalog.contains(kind, namespace, name),
        }
    }

    /// What to confirm where the catalog does not have an object: it may have come a moment ago.
    pub fn unless_found(&self, kind: &'static Kind, namespace: &str, name: &str) -> Option<Reference> {
        let is_found = self.catalog.contains(kind, namespace, name);
        (!is_found).then(|| Reference::new(kind, namespace, name))
    }

    /// The objects that `index` files under `key`, sorted by name, at most `limit`; see [`Catalog::indexed`].
    pub fn indexed(
        &self,
        kind: &'static Kind,
        index: &'static Index,
        namespace: &str,
        key: &str,
        limit: usize,
    ) -> Vec<Arc<Stored>> {
        let gone = |stored: &Arc<Stored>| {
            let reference = Reference::new(kind, stored.namespace(), stored.name());
            matches!(self.confirmation(&reference), Some(Confirmation::Gone))
        };
        let mut found = self.catalog.indexed(kind, index, namespace, key, limit.saturating_add(self.confirmed.len()));
        found.retain(|stored| !gone(stored));
        found.truncate(limit);
        found
    }

    /// The objects that `index` files under `key` in any namespace, as they are known now: what was confirmed to be gone is
    /// left out, and of the others what was confirmed counts. See [`Catalog::indexed_everywhere`].
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

    /// How many objects `index` files under `key`.
    pub fn count(&self, kind: &'static Kind, index: &'static Index, namespace: &str, key: &str) -> usize {
        self.catalog.count(kind, index, namespace, key)
    }

    /// What the API server said of an object; `None` where it was not asked.
    pub fn confirmation(&self, reference: &Reference) -> Option<&'a Confirmation> {
        if self.confirmed.is_empty() {
            return None;
        }
        self.confirmed.get(reference)
    }
}
