//! The catalog contains the objects that rules look up. Rules have no other access to data outside the request.
//!
//! The catalog does not depend on any system, such as Crossplane or Landscaper. A system declares the [`Kind`]s that it
//! looks up. Each kind has the [`Index`]es that the system needs. The catalog is filled by watches on a cluster
//! ([`cluster`]), or from a folder of manifests ([`manifests`]). Rules work with both.
//!
//! The cost of a look-up does not depend on the number of objects. Objects are found by namespace and name, or through
//! an index. Rules read through a [`View`]. In a view, objects that were read from the API server for the request take
//! precedence over the catalog.

mod change;
pub mod cluster;
mod compression;
mod declared;
mod decode;
pub mod frames;
mod freed;
pub mod freshness;
mod index;
mod kind;
mod listing;
mod lookups;
pub mod manifests;
pub mod metrics;
mod namespaces;
mod ordered;
mod parsed;
mod parts;
mod prepared;
mod projection;
mod record;
mod records;
mod selected;
mod settings;
mod storage;
mod store;
mod stored;
mod uuids;
mod view;
mod write;

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use serde_json::Value;
use tokio::sync::watch;

pub use change::{Change, Observe};
use declared::DeclaredKinds;
pub use declared::{CHOOSING_LABEL, Declaration, Declared};
pub use freshness::Freshness;
pub use kind::{Index, Kind, NAMESPACES, Scope};
pub use listing::Listing;
pub use lookups::Lookups;
use parsed::Parsed;
pub use parts::EVERY;
pub use projection::{Projection, Undecodable};
pub use settings::Settings;
pub use storage::Storage;
use store::Store;
pub use store::{Coverage, Size};
use stored::Held;
pub use stored::Stored;
pub use view::{LiveRead, LiveReads, Reference, View};

/// A reader of objects from the API server, for rules that must not see a stale object.
pub trait LiveReader: Send + Sync {
    /// Returns the JSON text of an object, or `None` if the object does not exist. The result is an error if the
    /// request to the API server fails.
    fn read<'a>(&'a self, reference: &'a Reference) -> LiveReading<'a>;
}

/// The future that a [`LiveReader`] returns. Its result is the JSON text of the object, `None` if the object does not
/// exist, or the reason why the request to the API server failed.
pub type LiveReading<'a> = Pin<Box<dyn Future<Output = Result<Option<String>, String>> + Send + 'a>>;

/// A cache of the objects in a cluster, or of the objects in a folder of manifests.
pub struct Catalog {
    stores: Vec<(&'static Kind, RwLock<Store>)>,
    declared: DeclaredKinds,
    parsed: Mutex<Parsed>,
    live_reader: Option<Arc<dyn LiveReader>>,
    observer: Option<Arc<dyn Observe>>,
}

impl Catalog {
    /// Creates an empty catalog for `kinds`. Each kind is pending until it is listed.
    pub fn new(kinds: impl IntoIterator<Item = &'static Kind>) -> Self {
        let stores = kinds.into_iter().map(|kind| (kind, RwLock::new(Store::new(kind, false)))).collect();
        Self {
            stores,
            declared: DeclaredKinds::new(Vec::new()),
            parsed: Mutex::default(),
            live_reader: None,
            observer: None,
        }
    }

    /// Sets which kinds of objects define further kinds at run time. For example, CompositeResourceDefinitions define
    /// the kinds of composites.
    #[must_use]
    pub fn declaring(mut self, declarations: Vec<&'static Declaration>) -> Self {
        self.declared = DeclaredKinds::new(declarations);
        self
    }

    /// Empties the catalog and makes it store whole objects, instead of only the parts in [`Kind::storage`]. Commands
    /// such as `portcullis explain` need whole objects, because they read more fields than rules do. Tests use whole
    /// objects to detect rules that read parts that are not stored.
    #[must_use]
    pub fn with_whole_objects(mut self) -> Self {
        for (kind, store) in &mut self.stores {
            *store = RwLock::new(Store::new(kind, true));
        }
        self.declared.is_whole = true;
        self
    }

    /// Creates a catalog that contains `objects`. The catalog then assumes that no other objects of `kinds` exist
    /// ([`Coverage::Complete`]).
    pub fn of(kinds: impl IntoIterator<Item = &'static Kind>, objects: Vec<Value>) -> Self {
        let catalog = Self::new(kinds);
        catalog.replace_all(objects);
        catalog
    }

    /// Sets the reader for live reads, which read objects from the API server. Without a reader, live reads return
    /// objects of the catalog.
    pub fn set_live_reader(&mut self, reader: Arc<dyn LiveReader>) {
        self.live_reader = Some(reader);
    }

    /// Sets which declared kinds the catalog includes. `names` contains the names of objects that declare kinds, such
    /// as CompositeResourceDefinitions. The name `*` includes all declared kinds. Kinds whose declaring object has the
    /// label [`CHOOSING_LABEL`] are always included.
    pub fn choose(&self, names: HashSet<String>) {
        self.declared.choose(names);
    }

    /// Returns the kinds that objects in the catalog define, such as the kinds that CompositeResourceDefinitions
    /// define. Contains only kinds that the configuration or a label selects, and whose objects the catalog watches.
    pub fn declared(&self) -> Vec<&'static Kind> {
        self.declared.kinds()
    }

    /// Returns the kinds that objects in the catalog define at run time. For example, each CompositeResourceDefinition
    /// defines a kind of composites. Each kind is returned with the `Declaration` that says how the catalog stores its
    /// objects.
    ///
    /// Contains only the kinds that [`Catalog::choose`] or the label `portcullis.dev/composites` selects.
    pub fn declarations(&self) -> Vec<(&'static Declaration, &'static Kind)> {
        self.declared.all()
    }

    /// Returns the declared kind with this API group and plural name, and its declaration. Objects in the cluster, such
    /// as CompositeResourceDefinitions, declare these kinds at run time. `None` if the catalog has no such kind.
    pub fn declared_as(&self, group: &str, plural: &str) -> Option<(&'static Declaration, &'static Kind)> {
        self.declared.named(group, plural)
    }

    /// Returns a receiver for changes of the declared kinds. It is notified when an object, such as a
    /// CompositeResourceDefinition, adds or removes a kind.
    pub fn declared_changes(&self) -> watch::Receiver<()> {
        self.declared.changes()
    }

    /// Sets the observer that the catalog calls after each change of an object. The catalog also calls it when the
    /// coverage of a kind changes. The coverage says whether the catalog contains all objects of the kind.
    pub fn set_observer(&mut self, observer: Arc<dyn Observe>) {
        self.observer = Some(observer);
    }

    /// Returns the kinds for which the catalog was created. Does not return kinds that objects such as
    /// CompositeResourceDefinitions define.
    pub fn kinds(&self) -> impl Iterator<Item = &'static Kind> + '_ {
        self.stores.iter().map(|(kind, _)| *kind)
    }

    /// Returns the coverage of a kind. It says how completely the catalog knows the objects of the kind.
    pub fn coverage(&self, kind: &'static Kind) -> Coverage {
        self.read(kind, Store::coverage).unwrap_or(Coverage::Pending)
    }

    /// Returns the number of stored objects of a kind.
    pub fn len(&self, kind: &'static Kind) -> usize {
        self.read(kind, Store::len).unwrap_or_default()
    }

    /// Returns the number and size of the stored objects of a kind.
    pub fn size(&self, kind: &'static Kind) -> Size {
        self.read(kind, Store::size).unwrap_or_default()
    }

    /// Returns the watched kinds whose objects have not been listed yet. An object of one of these kinds may exist in
    /// the cluster even if the catalog does not contain it.
    pub fn pending(&self) -> Vec<&'static Kind> {
        let is_awaited = |kind: &&'static Kind| !kind.is_read_by_name() && self.coverage(kind) == Coverage::Pending;
        self.kinds().filter(is_awaited).collect()
    }

    /// Returns whether the catalog contains the object with this namespace and name.
    pub fn contains(&self, kind: &'static Kind, namespace: &str, name: &str) -> bool {
        self.read(kind, |store| store.contains(kind.scope.namespace(namespace), name)).unwrap_or_default()
    }

    /// Returns the object with this namespace and name; `None` if it is not stored.
    pub fn find(&self, kind: &'static Kind, namespace: &str, name: &str) -> Option<Arc<Stored>> {
        let held = self.read(kind, |store| store.find(kind.scope.namespace(namespace), name))??;
        Some(self.parsed().get(held))
    }

    /// Returns at most `limit` objects that the index `index` lists under `key` in a namespace. The objects are sorted
    /// by name.
    pub fn indexed(
        &self,
        kind: &'static Kind,
        index: &'static Index,
        namespace: &str,
        key: &str,
        limit: usize,
    ) -> Vec<Arc<Stored>> {
        let namespace = kind.scope.namespace(namespace);
        self.objects(self.read(kind, |store| store.indexed(index, namespace, key, limit)).unwrap_or_default())
    }

    /// Returns at most `limit` objects that the index `index` lists under `key`, from all namespaces. The cost grows
    /// with the number of namespaces.
    pub fn indexed_everywhere(
        &self,
        kind: &'static Kind,
        index: &'static Index,
        key: &str,
        limit: usize,
    ) -> Vec<Arc<Stored>> {
        self.objects(self.read(kind, |store| store.indexed_everywhere(index, key, limit)).unwrap_or_default())
    }

    fn objects(&self, held: Vec<Held>) -> Vec<Arc<Stored>> {
        let mut parsed = self.parsed();
        held.into_iter().map(|held| parsed.get(held)).collect()
    }

    /// Returns the number of objects that the index `index` lists under `key` in a namespace.
    pub fn count(&self, kind: &'static Kind, index: &'static Index, namespace: &str, key: &str) -> usize {
        let namespace = kind.scope.namespace(namespace);
        self.read(kind, |store| store.count(index, namespace, key)).unwrap_or_default()
    }

    /// Returns all objects of a kind, in arbitrary order.
    pub fn all(&self, kind: &'static Kind) -> Vec<Arc<Stored>> {
        let held = self.read(kind, Store::all).unwrap_or_default();
        held.into_iter().map(|held| Arc::new(Stored::held(held))).collect()
    }

    /// Reads an object from the API server; `None` if it does not exist. Without a live reader, returns the object of
    /// the catalog.
    ///
    /// # Errors
    ///
    /// The reason why the request to the API server failed, or why the object cannot be decoded. Without a live reader,
    /// it is an error if the catalog does not contain the object and has not listed its kind.
    pub async fn read_live(&self, reference: &Reference) -> Result<Option<Arc<Stored>>, String> {
        let Some(reader) = &self.live_reader else {
            let found = self.find(reference.kind, &reference.namespace, &reference.name);
            let is_unknown = found.is_none() && self.coverage(reference.kind) == Coverage::Pending;
            return if is_unknown { Err("no list of this kind was read".to_owned()) } else { Ok(found) };
        };
        let Some(text) = reader.read(reference).await? else { return Ok(None) };
        let stored = Stored::projected(reference.kind, &text);
        stored.map(|stored| Some(Arc::new(stored))).map_err(|undecodable| undecodable.to_string())
    }

    /// Waits for `asked`, a future that reads objects from the API server. Returns its result, or `None` if it does not
    /// complete by the deadline `last`.
    ///
    /// If the catalog has no connection to an API server, `asked` reads only from memory and never waits. In this case,
    /// `last` is ignored, because the Tokio runtime may have no timer.
    pub async fn within<T>(&self, last: Instant, asked: impl Future<Output = T>) -> Option<T> {
        match self.live_reader {
            Some(_) => tokio::time::timeout_at(last.into(), asked).await.ok(),
            None => Some(asked.await),
        }
    }

    fn parsed(&self) -> MutexGuard<'_, Parsed> {
        self.parsed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store(&self, kind: &'static Kind) -> Option<&RwLock<Store>> {
        self.stores.iter().find(|(held, _)| std::ptr::eq(*held, kind)).map(|(_, store)| store)
    }

    // After a panic while the lock is held, an index may have a wrong entry for one object until that object changes.
    fn read<T>(&self, kind: &'static Kind, look: impl FnOnce(&Store) -> T) -> Option<T> {
        if let Some(store) = self.store(kind) {
            return Some(look(&store.read().unwrap_or_else(PoisonError::into_inner)));
        }
        let store = self.declared.store(kind)?;
        Some(look(&store.read().unwrap_or_else(PoisonError::into_inner)))
    }

    fn write<T>(&self, kind: &'static Kind, change: impl FnOnce(&mut Store) -> T) -> Option<T> {
        if let Some(store) = self.store(kind) {
            return Some(change(&mut store.write().unwrap_or_else(PoisonError::into_inner)));
        }
        let store = self.declared.store(kind)?;
        Some(change(&mut store.write().unwrap_or_else(PoisonError::into_inner)))
    }
}
