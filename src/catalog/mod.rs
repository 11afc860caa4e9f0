//! What rules may look up: the one read interface to everything that is not in the request.
//!
//! The catalog knows no system. A system declares the [`Kind`]s that it looks up, each with the [`Index`]es it needs;
//! watches on a cluster ([`cluster`]) or manifests from a folder ([`manifests`]) fill it, and rules cannot tell which.
//!
//! A look-up costs the same whatever is stored: objects are found by namespace and name, or through an index. Rules read
//! through a [`View`], which puts objects that were confirmed with the API server over what the watches say.

mod change;
pub mod cluster;
mod declared;
pub mod heard;
mod kind;
pub mod manifests;
pub mod metrics;
pub mod pages;
mod settings;
mod store;
mod view;

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use serde_json::Value;
use tokio::sync::watch;

pub use change::{Change, Observe};
use declared::DeclaredKinds;
pub use declared::{CHOOSING_LABEL, Declaration, Declared};
pub use heard::Heard;
pub use kind::{Index, Kind, METADATA_ONLY, NAMESPACES, READ_BY_NAME, Scope};
pub use settings::Settings;
pub use store::{Coverage, Stored};
use store::{Store, Users};
pub use view::{Confirmation, Confirmed, Reference, View};

/// A read that goes to the API server, for where a stale answer would be unsafe.
pub trait Confirm: Send + Sync {
    /// The object as the API server has it now; `None` where it has none; an error when it cannot be asked.
    fn confirm<'a>(&'a self, reference: &'a Reference) -> Confirming<'a>;
}

/// The pending answer of a [`Confirm`].
pub type Confirming<'a> = Pin<Box<dyn Future<Output = Result<Option<Value>, String>> + Send + 'a>>;

/// What is known of the cluster, or of the folder that stands for one.
pub struct Catalog {
    stores: Vec<(&'static Kind, RwLock<Store>)>,
    declared: DeclaredKinds,
    confirm: Option<Arc<dyn Confirm>>,
    observer: Option<Arc<dyn Observe>>,
}

impl Catalog {
    /// A catalog for `kinds` of which nothing is known yet.
    pub fn new(kinds: impl IntoIterator<Item = &'static Kind>) -> Self {
        let stores = kinds.into_iter().map(|kind| (kind, RwLock::new(Store::new(kind)))).collect();
        Self { stores, declared: DeclaredKinds::new(Vec::new()), confirm: None, observer: None }
    }

    /// This catalog, with the kinds that its objects declare.
    #[must_use]
    pub fn declaring(mut self, declarations: Vec<&'static Declaration>) -> Self {
        self.declared = DeclaredKinds::new(declarations);
        self
    }

    /// A catalog that holds just `objects`, and knows that there are no others.
    pub fn of(kinds: impl IntoIterator<Item = &'static Kind>, objects: Vec<Value>) -> Self {
        let catalog = Self::new(kinds);
        catalog.replace_all(objects);
        catalog
    }

    /// Lets `confirm` answer confirmed reads; without it they are answered from the catalog.
    pub fn set_confirm(&mut self, confirm: Arc<dyn Confirm>) {
        self.confirm = Some(confirm);
    }

    /// Has the kinds that objects of these names declare looked at, besides those of objects with [`CHOOSING_LABEL`]. `*`
    /// stands for all.
    pub fn choose(&self, names: HashSet<String>) {
        self.declared.choose(names);
        self.declared.declarations().iter().for_each(|declaration| self.redeclare(declaration));
    }

    /// The kinds that objects in it declare, and that are looked at.
    pub fn declared(&self) -> Vec<&'static Kind> {
        self.declared.kinds()
    }

    /// All kinds that objects in it declare, those too of which only requests are looked at.
    pub fn declarations(&self) -> Vec<(&'static Declaration, &'static Kind)> {
        self.declared.all()
    }

    /// Which of the declared kinds has a plural name, and how it was declared.
    pub fn declared_as(&self, group: &str, plural: &str) -> Option<(&'static Declaration, &'static Kind)> {
        self.declared.named(group, plural)
    }

    /// Rings whenever other kinds are declared.
    pub fn declared_changes(&self) -> watch::Receiver<()> {
        self.declared.changes()
    }

    /// Tells `observer` of every change.
    pub fn set_observer(&mut self, observer: Arc<dyn Observe>) {
        self.observer = Some(observer);
    }

    /// The kinds that it holds, but for the declared ones.
    pub fn kinds(&self) -> impl Iterator<Item = &'static Kind> + '_ {
        self.stores.iter().map(|(kind, _)| *kind)
    }

    /// How much is known of a kind.
    pub fn coverage(&self, kind: &'static Kind) -> Coverage {
        self.read(kind, Store::coverage).unwrap_or(Coverage::Pending)
    }

    /// The number of objects of a kind.
    pub fn len(&self, kind: &'static Kind) -> usize {
        self.read(kind, Store::len).unwrap_or_default()
    }

    /// The kinds that are still to be listed for the first time.
    pub fn pending(&self) -> Vec<&'static Kind> {
        let is_awaited = |kind: &&'static Kind| !kind.is_read_by_name() && self.coverage(kind) == Coverage::Pending;
        self.kinds().filter(is_awaited).collect()
    }

    /// The object of that name.
    pub fn find(&self, kind: &'static Kind, namespace: &str, name: &str) -> Option<Arc<Stored>> {
        self.read(kind, |store| store.find(kind.scope.namespace(namespace), name))?
    }

    /// The objects that `index` files under `key` in a namespace, sorted by name; at most `limit` of them.
    pub fn indexed(
        &self,
        kind: &'static Kind,
        index: &'static Index,
        namespace: &str,
        key: &str,
        limit: usize,
    ) -> Vec<Arc<Stored>> {
        self.read(kind, |store| store.indexed(index, namespace, key, limit)).unwrap_or_default()
    }

    /// The objects that `index` files under `key` in any namespace; at most `limit` of them. Costs a little for each
    /// namespace.
    pub fn indexed_everywhere(
        &self,
        kind: &'static Kind,
        index: &'static Index,
        key: &str,
        limit: usize,
    ) -> Vec<Arc<Stored>> {
        self.read(kind, |store| store.indexed_everywhere(index, key, limit)).unwrap_or_default()
    }

    /// How many objects `index` files under `key` in a namespace.
    pub fn count(&self, kind: &'static Kind, index: &'static Index, namespace: &str, key: &str) -> usize {
        self.read(kind, |store| store.users(index, namespace, key).map_or(0, Users::len)).unwrap_or_default()
    }

    /// All objects of a kind.
    pub fn all(&self, kind: &'static Kind) -> Vec<Arc<Stored>> {
        self.read(kind, Store::all).unwrap_or_default()
    }

    /// Puts an object in, in place of the one of its name.
    pub fn insert(&self, kind: &'static Kind, object: Value) {
        let changed = self.write(kind, |store| store.insert(object));
        if let (Some((before, now)), Some(observer)) = (changed, &self.observer) {
            observer.changed(&Change { kind, before, now: Some(now) }, self);
        }
    }

    /// Takes an object out.
    pub fn remove(&self, kind: &'static Kind, namespace: &str, name: &str) {
        let gone = self.write(kind, |store| store.remove(kind.scope.namespace(namespace), name)).flatten();
        if let (Some(gone), Some(observer)) = (gone, &self.observer) {
            observer.changed(&Change { kind, before: Some(gone), now: None }, self);
        }
    }

    /// Puts `objects` in the place of all that is known of a kind.
    pub fn replace(&self, kind: &'static Kind, coverage: Coverage, objects: Vec<Value>) {
        let mut fresh = Store::new(kind);
        for object in objects {
            fresh.insert(object);
        }
        fresh.set_coverage(coverage);
        let now = self.observer.is_some().then(|| fresh.all());
        let before = self.write(kind, |store| std::mem::replace(store, fresh));
        if let (Some(observer), Some(now), Some(before)) = (&self.observer, now, before) {
            change::between(kind, before.all(), now).iter().for_each(|change| observer.changed(change, self));
            observer.covered(kind, coverage);
        }
    }

    /// Puts `objects` of any kinds in the place of everything; those of kinds that nobody looks up are left out.
    pub fn replace_all(&self, objects: Vec<Value>) {
        // What is declared is known when the others are there.
        let rest = self.replace_kinds(self.kinds().collect(), objects);
        self.replace_kinds(self.declared(), rest);
    }

    /// Sorts objects into kinds, and gives those that are of none.
    fn replace_kinds(&self, kinds: Vec<&'static Kind>, objects: Vec<Value>) -> Vec<Value> {
        let mut sorted: Vec<Vec<Value>> = kinds.iter().map(|_| Vec::new()).collect();
        let mut rest = Vec::new();
        for object in objects {
            match kinds.iter().position(|kind| kind.is_kind_of(&object)) {
                Some(at) => sorted[at].push(object),
                None => rest.push(object),
            }
        }
        for (kind, objects) in kinds.into_iter().zip(sorted) {
            self.replace(kind, Coverage::Complete, objects);
        }
        rest
    }

    /// Forgets everything.
    pub fn clear(&self) {
        for kind in self.kinds().chain(self.declared()).collect::<Vec<_>>() {
            self.replace(kind, Coverage::Pending, Vec::new());
        }
    }

    /// Says how much is known of a kind.
    pub fn set_coverage(&self, kind: &'static Kind, coverage: Coverage) {
        self.write(kind, |store| store.set_coverage(coverage));
        if let Some(observer) = &self.observer {
            observer.covered(kind, coverage);
        }
    }

    /// Reads an object where the answer cannot be stale.
    ///
    /// # Errors
    /// Why the API server could not be asked.
    pub async fn confirm(&self, reference: &Reference) -> Result<Option<Arc<Stored>>, String> {
        match &self.confirm {
            Some(confirm) => Ok(confirm.confirm(reference).await?.map(|value| Arc::new(Stored::new(value)))),
            None => Ok(self.find(reference.kind, &reference.namespace, &reference.name)),
        }
    }

    /// Waits for `asked` until `last`. Without an API server there is nothing to wait for, nor a clock to wait by.
    pub async fn within<T>(&self, last: Instant, asked: impl Future<Output = T>) -> Option<T> {
        match self.confirm {
            Some(_) => tokio::time::timeout_at(last.into(), asked).await.ok(),
            None => Some(asked.await),
        }
    }

    fn store(&self, kind: &'static Kind) -> Option<&RwLock<Store>> {
        self.stores.iter().find(|(held, _)| std::ptr::eq(*held, kind)).map(|(_, store)| store)
    }

    // A panic while a lock is held leaves a store that is whole: every change is made by one call into a map.
    fn read<T>(&self, kind: &'static Kind, look: impl FnOnce(&Store) -> T) -> Option<T> {
        if let Some(store) = self.store(kind) {
            return Some(look(&store.read().unwrap_or_else(PoisonError::into_inner)));
        }
        let store = self.declared.store(kind)?;
        Some(look(&store.read().unwrap_or_else(PoisonError::into_inner)))
    }

    fn write<T>(&self, kind: &'static Kind, change: impl FnOnce(&mut Store) -> T) -> Option<T> {
        let changed = match self.store(kind) {
            Some(store) => change(&mut store.write().unwrap_or_else(PoisonError::into_inner)),
            None => change(&mut self.declared.store(kind)?.write().unwrap_or_else(PoisonError::into_inner)),
        };
        self.declared.by(kind).for_each(|declaration| self.redeclare(declaration));
        Some(changed)
    }

    fn redeclare(&self, declaration: &'static Declaration) {
        self.declared.follow(declaration, || self.all(declaration.by));
    }
}
