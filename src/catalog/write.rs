//! Stores, replaces and removes objects of the catalog.

use std::sync::Arc;

use serde_json::Value;

use super::prepared::{Batch, Prepared};
use super::store::{Changed, Store};
use super::stored::Held;
use super::{Catalog, Change, Coverage, Kind, Listing, Projection, Stored, Undecodable};

impl Catalog {
    /// Decodes the fields that the catalog stores for this kind from the JSON text of an object. Returns an empty
    /// result if the catalog does not store the kind.
    ///
    /// # Errors
    ///
    /// If the text is not a JSON object, is nested too deep, or has a name that is too long.
    pub fn decode<'t>(&self, kind: &'static Kind, text: &'t str) -> Result<Projection<'t>, Undecodable> {
        match self.read(kind, Store::selection) {
            Some(selection) => Projection::of(kind, &selection, text),
            None => Ok(Projection::default()),
        }
    }

    /// Stores a decoded object in the catalog, in place of any object with the same namespace and name.
    pub fn put(&self, kind: &'static Kind, object: Projection<'_>) {
        let Some(preparation) = self.read(kind, Store::preparation) else { return };
        let mut batch = Batch::default();
        batch.add(0, kind, object, &preparation);
        batch.objects().for_each(|(_, prepared)| self.store_prepared(kind, &prepared));
    }

    /// Decodes and compresses an object, computes its index keys, and adds the result to `batch`. Returns the length of
    /// the object in bytes. Returns `None` and does nothing if the catalog does not store the kind.
    ///
    /// - `number`: identifies the object's kind in the batch.
    /// - `text`: the JSON text that begins with the object.
    /// - `namespace`: the namespace of an object whose text contains no namespace.
    ///
    /// # Errors
    ///
    /// If the object is not a complete JSON object, is nested too deep, or has a name that is too long.
    pub(super) fn prepare<'t>(
        &self,
        number: usize,
        kind: &'static Kind,
        text: &'t str,
        namespace: &'t str,
        batch: &mut Batch,
    ) -> Result<Option<usize>, Undecodable> {
        let make = || self.read(kind, Store::preparation);
        let Some(preparation) = batch.preparation(number, make) else { return Ok(None) };
        let (mut object, length) = Projection::of_start(kind, &preparation.selection, text)?;
        if object.namespace.is_empty() {
            object.namespace = namespace.into();
        }
        batch.add(number, kind, object, &preparation);
        Ok(Some(length))
    }

    /// Stores a prepared object, and replaces the object with the same namespace and name.
    pub(super) fn store_prepared(&self, kind: &'static Kind, object: &Prepared<'_>) {
        let is_observed = self.observer.is_some() || self.declared.is_declaring(kind);
        if let Some(changed) = self.write(kind, |store| store.insert(object, is_observed)).flatten() {
            self.notify(kind, changed);
        }
    }

    /// Stores an object, and replaces the object with the same namespace and name. Logs and counts objects that cannot
    /// be stored.
    pub fn insert(&self, kind: &'static Kind, object: Value) {
        self.insert_value(kind, &object);
    }

    fn insert_value(&self, kind: &'static Kind, object: &Value) {
        match self.decode(kind, &object.to_string()) {
            Ok(object) => self.put(kind, object),
            Err(undecodable) => self.reject(kind, &undecodable),
        }
    }

    /// Stores objects of any kinds, and replaces objects with the same namespace and name. Skips objects whose kind the
    /// catalog does not store.
    pub fn insert_all<'v>(&self, objects: impl Iterator<Item = &'v Value> + Clone) {
        self.insert_kinds(&self.kinds().collect::<Vec<_>>(), objects.clone());
        // Kinds of composites are known only after the CompositeResourceDefinitions that declare them are stored.
        self.insert_kinds(&self.declared(), objects);
    }

    fn insert_kinds<'v>(&self, kinds: &[&'static Kind], objects: impl Iterator<Item = &'v Value>) {
        for object in objects {
            if let Some(kind) = kinds.iter().find(|kind| kind.is_kind_of(object)) {
                self.insert_value(kind, object);
            }
        }
    }

    /// Logs and counts an object that cannot be stored.
    pub fn reject(&self, kind: &'static Kind, undecodable: &Undecodable) {
        tracing::error!(kind = kind.full_name(), object = %undecodable, "not stored");
        self.write(kind, Store::reject);
    }

    /// Returns the number of times that an object of a kind could not be stored since the process started. Some kinds
    /// are declared by objects in the cluster, such as CompositeResourceDefinitions. For these kinds, the count starts
    /// when the kind is added to the catalog.
    pub fn rejected(&self, kind: &'static Kind) -> u64 {
        self.read(kind, Store::rejected).unwrap_or_default()
    }

    /// Removes the object with this namespace and name.
    pub fn remove(&self, kind: &'static Kind, namespace: &str, name: &str) {
        if let Some(gone) = self.write(kind, |store| store.remove(kind.scope.namespace(namespace), name)).flatten() {
            self.notify(kind, gone);
        }
    }

    /// Starts a new listing of a kind. The caller adds the listed objects to the returned [`Listing`] one at a time.
    /// The listed objects replace the stored objects.
    pub fn list(&self, kind: &'static Kind) -> Listing<'_> {
        Listing::begin(self, kind)
    }

    /// Replaces all objects of a kind with `objects`. Also sets the coverage of the kind, for example to `Complete` if
    /// `objects` are all objects of this kind in the cluster.
    pub fn replace(&self, kind: &'static Kind, coverage: Coverage, objects: Vec<Value>) {
        let mut listing = self.list(kind);
        objects.iter().for_each(|object| listing.add(&object.to_string()));
        listing.finish(coverage);
    }

    /// Replaces all objects with `objects` of any kinds. Skips objects whose kind the catalog does not store.
    pub fn replace_all(&self, objects: Vec<Value>) {
        // Kinds of composites are known only after the CompositeResourceDefinitions that declare them are stored.
        let rest = self.replace_kinds(self.kinds().collect(), objects);
        self.replace_kinds(self.declared(), rest);
    }

    /// Replaces all stored objects of `kinds` with those in `objects`, and returns the elements of `objects` that have
    /// other kinds. An object matches a kind even if it has another API version. So if `kinds` contains two versions of
    /// a kind, each object of this kind is stored twice, once for each version.
    fn replace_kinds(&self, kinds: Vec<&'static Kind>, objects: Vec<Value>) -> Vec<Value> {
        let mut listings: Vec<_> = kinds.into_iter().map(|kind| self.list(kind)).collect();
        let mut rest = Vec::new();
        for object in objects {
            let mut of_kind: Vec<_> =
                listings.iter_mut().filter(|listing| listing.kind().is_kind_of(&object)).collect();
            if of_kind.is_empty() {
                rest.push(object);
            } else {
                let text = object.to_string();
                of_kind.iter_mut().for_each(|listing| listing.add(&text));
            }
        }
        listings.into_iter().for_each(|listing| listing.finish(Coverage::Complete));
        rest
    }

    /// Removes all objects from the catalog. Also sets the coverage of all kinds to `Pending`, which means that their
    /// objects are not listed yet.
    pub fn clear(&self) {
        for kind in self.kinds().chain(self.declared()).collect::<Vec<_>>() {
            self.list(kind).finish(Coverage::Pending);
        }
    }

    /// Sets the coverage of a kind, which says how completely the catalog knows the objects of the kind. Also notifies
    /// the observer of the catalog.
    pub fn set_coverage(&self, kind: &'static Kind, coverage: Coverage) {
        self.write(kind, |store| store.set_coverage(coverage));
        self.cover(kind, coverage);
    }

    /// Notifies the observer of the catalog about the new coverage of a kind. The coverage says how completely the
    /// catalog knows the objects of the kind.
    pub(super) fn cover(&self, kind: &'static Kind, coverage: Coverage) {
        if let Some(observer) = &self.observer {
            observer.covered(kind, coverage);
        }
    }

    /// Processes a change of a stored object. Updates the cache of parsed objects, and notifies the observer of the
    /// catalog. Some objects declare further kinds: for example, a CompositeResourceDefinition declares the kind of its
    /// composites. For such an object, also updates the set of declared kinds.
    pub(super) fn notify(&self, kind: &'static Kind, Changed { before, now }: Changed) {
        if let Some(before) = &before {
            self.parsed().forget(before);
        }
        if self.declared.is_declaring(kind)
            && let Some(held) = now.as_ref().or(before.as_ref())
        {
            self.declared.note(kind, held.name(), now.as_ref().map(Held::value).as_ref());
        }
        if let Some(observer) = &self.observer {
            let [before, now] = [before, now].map(|held| held.map(|held| Arc::new(Stored::held(held))));
            observer.changed(&Change { kind, before, now }, self);
        }
    }
}
