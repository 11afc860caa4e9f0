//! The store for the objects of one kind. It finds objects by name and by index.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::compression::{Dictionary, Form, Samples};
use super::index::Postings;
use super::namespaces::Namespaces;
use super::parts::{EVERYTHING, Part, Selection};
use super::prepared::{self, Batch, IndexKey, Preparation, Prepared, index_keys};
use super::projection::Projection;
use super::record::{Compressed, NamespaceId};
use super::records::{Id, Records};
use super::stored::Held;
use super::{Index, Kind, selected};

/// The coverage of a kind: whether the catalog contains all objects of this kind in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coverage {
    /// The objects of the kind are not listed yet. So an object that is not found may exist.
    Pending,
    /// The cluster does not serve the kind.
    Absent,
    /// All objects of the kind are listed. So an object that is not found does not exist.
    Complete,
}

/// Maximum number of objects for which memory is reserved. It bounds the memory that a wrong number in the list
/// response of an API server can reserve. It is more than the objects of one kind in a large cluster.
const MAX_RESERVED: usize = 1 << 20;

/// The number and size of the objects of one kind in the catalog.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// Number of objects of the kind in the catalog.
    pub objects: usize,
    /// Memory that the objects and their indexes take, in bytes.
    pub bytes: usize,
}

/// A change of one object in a store: the object before and after the change.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) before: Option<Held>,
    /// The object after the change. `None` if it was removed, or if nothing observes the objects of its kind.
    pub(super) now: Option<Held>,
}

/// The stored objects of one kind, with their indexes.
pub(super) struct Store {
    kind: &'static Kind,
    selection: Arc<Selection>,
    coverage: Coverage,
    records: Records,
    namespaces: Namespaces,
    /// The ids of objects, by the hash of namespace and name.
    names: HashTable<Id>,
    seed: RandomState,
    indexes: Vec<Postings>,
    samples: Samples,
    dictionary: Option<Arc<Dictionary>>,
    /// The highest id of an object that was compressed without the dictionary. `None` if there is none to compress
    /// again.
    last_without_dictionary: Option<Id>,
    /// Number of objects that could not be stored.
    rejected: u64,
}

impl Store {
    pub(super) fn new(kind: &'static Kind, is_whole: bool) -> Self {
        let everything = || Selection { stored: Part::of(EVERYTHING), indexed: Part::of(EVERYTHING) };
        Self {
            kind,
            selection: Arc::new(if is_whole { everything() } else { kind.selection() }),
            coverage: Coverage::Pending,
            records: Records::default(),
            namespaces: Namespaces::default(),
            names: HashTable::new(),
            seed: RandomState::new(),
            indexes: kind.indexes.iter().map(|_| Postings::default()).collect(),
            samples: Samples::default(),
            dictionary: None,
            last_without_dictionary: None,
            rejected: 0,
        }
    }

    pub(super) fn reject(&mut self) {
        self.rejected += 1;
    }

    pub(super) fn rejected(&self) -> u64 {
        self.rejected
    }

    pub(super) fn selection(&self) -> Arc<Selection> {
        Arc::clone(&self.selection)
    }

    pub(super) fn preparation(&self) -> Preparation {
        Preparation { selection: self.selection(), dictionary: self.dictionary.clone(), seed: self.seed.clone() }
    }

    pub(super) fn coverage(&self) -> Coverage {
        self.coverage
    }

    pub(super) fn set_coverage(&mut self, coverage: Coverage) {
        self.coverage = coverage;
        self.indexes.iter_mut().for_each(|postings| postings.sort(&self.records));
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn size(&self) -> Size {
        let names = self.names.capacity() * (size_of::<Id>() + 1);
        let indexes: usize = self.indexes.iter().map(Postings::size).sum();
        Size { objects: self.len(), bytes: self.records.size() + names + indexes }
    }

    pub(super) fn contains(&self, namespace: &str, name: &str) -> bool {
        self.id(namespace, name).is_some()
    }

    pub(super) fn find(&self, namespace: &str, name: &str) -> Option<Held> {
        self.held(self.id(namespace, name)?)
    }

    pub(super) fn all(&self) -> Vec<Held> {
        self.records.ids().filter_map(|id| self.held(id)).collect()
    }

    pub(super) fn count(&self, index: &'static Index, namespace: &str, key: &str) -> usize {
        let hash = prepared::hash(&self.seed, namespace, key);
        self.postings(index).map_or(0, |postings| postings.count(hash))
    }

    /// Returns at most `limit` objects that have the key `key` in the index `index`, from all namespaces.
    pub(super) fn indexed_everywhere(&self, index: &'static Index, key: &str, limit: usize) -> Vec<Held> {
        let mut found = Vec::new();
        for namespace in self.namespaces.sorted() {
            if found.len() >= limit {
                break;
            }
            found.extend(self.indexed(index, namespace, key, limit - found.len()));
        }
        found
    }

    pub(super) fn indexed(&self, index: &'static Index, namespace: &str, key: &str, limit: usize) -> Vec<Held> {
        let hash = prepared::hash(&self.seed, namespace, key);
        let ids = self.postings(index).into_iter().flat_map(|postings| postings.get(hash));
        ids.take(limit).filter_map(|id| self.held(id)).collect()
    }

    /// Stores an object, and replaces the object with the same namespace and name. Returns the change; `None` if the
    /// object was already stored with the same content. The change contains the new object only if `is_observed` is
    /// true, because copying each object takes time.
    pub(super) fn insert(&mut self, new: &Prepared<'_>, is_observed: bool) -> Option<Changed> {
        let (id, before) = match self.id(new.namespace, new.name) {
            Some(id) => (id, Some(self.replace(id, new)?)),
            None => (self.add(new)?, None),
        };
        let now = if is_observed { self.held(id) } else { None };
        Some(Changed { before, now })
    }

    pub(super) fn remove(&mut self, namespace: &str, name: &str) -> Option<Changed> {
        self.remove_id(self.id(namespace, name)?)
    }

    /// Begins a listing. Objects that are not inserted during the listing are removed by [`Store::finish_listing`].
    pub(super) fn begin_listing(&mut self) {
        self.records.unsee_all();
    }

    /// Reserves memory for `total` objects, of which some are already stored. Without this, each table would double its
    /// size several times, and the allocator would keep the memory of the smaller tables. Assumes that further objects
    /// have as many index keys as the objects that are already stored.
    pub(super) fn reserve(&mut self, total: usize) {
        let stored = self.len();
        let more = total.min(MAX_RESERVED).saturating_sub(stored);
        self.names.reserve(more, hasher(&self.records, &self.seed));
        self.indexes.iter_mut().for_each(|postings| postings.reserve(more, stored));
        self.records.reserve(more);
    }

    /// Ends a listing of the Kubernetes objects of one kind. Removes the stored objects that were not in the listing,
    /// and returns a change for each of them. Stores `coverage`, which says whether all objects of the kind in the
    /// cluster are now known.
    pub(super) fn finish_listing(&mut self, coverage: Coverage) -> Vec<Changed> {
        let gone: Vec<_> = self.records.ids().filter(|id| !self.records.is_seen(*id)).collect();
        let gone = gone.into_iter().filter_map(|id| self.remove_id(id)).collect();
        if self.records.is_sparse() {
            self.renumber();
        }
        self.set_coverage(coverage);
        self.shrink();
        self.compress_first_objects();
        gone
    }

    /// Frees memory that was reserved but is not used. There is such memory after many objects were removed, or if a
    /// listing contained fewer objects than the API server announced.
    fn shrink(&mut self) {
        self.indexes.iter_mut().for_each(Postings::shrink);
        self.records.shrink();
        if self.names.capacity() > 4 * self.names.len() {
            self.names.shrink_to_fit(hasher(&self.records, &self.seed));
        }
    }

    fn postings(&self, index: &'static Index) -> Option<&Postings> {
        self.indexes.get(self.kind.indexes.iter().position(|declared| std::ptr::eq(*declared, index))?)
    }

    fn hash(&self, namespace: NamespaceId, name: &str) -> u64 {
        self.seed.hash_one((namespace, name.as_bytes()))
    }

    fn id(&self, namespace: &str, name: &str) -> Option<Id> {
        let namespace = self.namespaces.number(namespace)?;
        let is_it = |id: &Id| self.records.namespace_and_name(*id) == Some((namespace, name.as_bytes()));
        self.names.find(self.hash(namespace, name), is_it).copied()
    }

    fn held(&self, id: Id) -> Option<Held> {
        let (record, bytes) = self.records.get(id)?;
        let namespace = Arc::clone(self.namespaces.name(record.namespace)?);
        Some(Held { kind: self.kind, namespace, id, bytes: bytes.into(), dictionary: self.dictionary.clone() })
    }

    /// Stores a new object. Returns its id; `None` if no id is left.
    fn add(&mut self, new: &Prepared<'_>) -> Option<Id> {
        let namespace = self.namespaces.enter(new.namespace)?;
        let id = self.records.insert(&new.parts.record(namespace, new.name))?;
        self.records.see(id);
        let hash = self.hash(namespace, new.name);
        self.names.insert_unique(hash, id, hasher(&self.records, &self.seed));
        // The ids in the indexes are sorted at the end of the first listing.
        let add = if self.coverage == Coverage::Pending { Postings::append } else { Postings::insert };
        self.add_keys(id, new.keys, add);
        self.learn(id, &new.parts);
        Some(id)
    }

    /// Replaces the object with this id. Returns the object before the change; `None` if its content is the same.
    fn replace(&mut self, id: Id, new: &Prepared<'_>) -> Option<Held> {
        self.records.see(id);
        let before = self.held(id)?;
        let record = before.record()?;
        if record.holds(&new.parts, self.dictionary.as_deref()) {
            return None;
        }
        self.file(id, &self.keys(&before), new.keys);
        self.records.replace(id, &new.parts.record(record.namespace, new.name));
        self.learn(id, &new.parts);
        Some(before)
    }

    fn remove_id(&mut self, id: Id) -> Option<Changed> {
        let before = self.held(id)?;
        let record = before.record()?;
        self.file(id, &self.keys(&before), &[]);
        if let Ok(found) = self.names.find_entry(self.hash(record.namespace, record.name), |known| *known == id) {
            found.remove();
        }
        self.records.remove(id);
        self.namespaces.leave(record.namespace);
        Some(Changed { before: Some(before), now: None })
    }

    fn keys(&self, held: &Held) -> Vec<IndexKey> {
        let mut keys = Vec::new();
        let fields = self.indexed_fields(&held.text());
        index_keys(self.kind, &self.preparation(), &held.namespace, held.name(), fields, &mut keys);
        keys
    }

    /// Returns the fields that the indexes read, from the stored text of an object.
    fn indexed_fields(&self, text: &str) -> Map<String, Value> {
        // The text was decoded before, so it is a JSON object.
        match selected::parse(&self.selection.indexed, text) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        }
    }

    /// Updates the indexes when the index keys of an object change from `before` to `now`.
    fn file(&mut self, id: Id, before: &[IndexKey], now: &[IndexKey]) {
        for key in before.iter().filter(|key| !now.contains(key)) {
            if let Some(postings) = self.indexes.get_mut(key.index) {
                postings.remove(key.hash, id, &self.records);
            }
        }
        self.add_keys(id, now, Postings::insert);
    }

    /// Adds an object to the indexes under `keys`. `add` adds it to one index under the key with this hash.
    fn add_keys(&mut self, id: Id, keys: &[IndexKey], add: fn(&mut Postings, u64, Id, &Records)) {
        for key in keys {
            if let Some(postings) = self.indexes.get_mut(key.index) {
                add(postings, key.hash, id, &self.records);
            }
        }
    }

    /// Adds an object to the samples for the compression dictionary, unless the dictionary already exists. Remembers an
    /// object that was compressed without the dictionary.
    fn learn(&mut self, id: Id, parts: &Compressed<'_>) {
        if self.dictionary.is_none() {
            self.dictionary = self.samples.add(&parts.original(None)).map(Arc::new);
        }
        if parts.form == Form::Alone {
            self.last_without_dictionary = self.last_without_dictionary.max(Some(id));
        }
    }

    /// Compresses the objects again that were stored before the compression dictionary was complete.
    fn compress_first_objects(&mut self) {
        let Some(dictionary) = self.dictionary.clone() else { return };
        let Some(last) = self.last_without_dictionary.take() else { return };
        for id in 0..=last {
            let Some((record, _)) = self.records.get(id).filter(|(record, _)| record.lacks_dictionary()) else {
                continue;
            };
            let parts = Compressed::text(&record.text(None), Some(&dictionary));
            if let Some(bytes) = parts.map(|parts| parts.record(record.namespace, record.name)) {
                self.records.replace(id, &bytes);
            }
        }
    }

    /// Gives the objects new ids after most objects were removed, to free memory.
    fn renumber(&mut self) {
        let objects = self.all();
        self.records = Records::default();
        self.namespaces = Namespaces::default();
        self.names = HashTable::new();
        self.indexes.iter_mut().for_each(|postings| *postings = Postings::default());
        let preparation = self.preparation();
        for held in objects {
            let (namespace, name, text) = (held.namespace.as_ref().into(), held.name().into(), held.text());
            let indexed = self.indexed_fields(&text);
            let object = Projection { namespace, name, text, indexed, resource_version: Cow::default() };
            let mut batch = Batch::default();
            batch.add(0, self.kind, object, &preparation);
            for (_, object) in batch.objects() {
                self.add(&object);
            }
        }
    }
}

/// Returns a function for the table [`Store::names`]. The function gets the id of an object, and returns a hash of the
/// namespace and the name of the object.
fn hasher(records: &Records, seed: &RandomState) -> impl Fn(&Id) -> u64 {
    move |id| records.namespace_and_name(*id).map_or(0, |name| seed.hash_one(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Catalog, Scope, Storage};
    use super::*;

    static BY_COLOUR: Index = Index {
        name: "colour",
        parts: &[&["colour"]],
        keys: |object| object.get("colour").and_then(Value::as_str).map(str::to_owned).into_iter().collect(),
    };
    static THINGS: Kind = Kind {
        group: "example.org",
        version: "v1",
        kind: "Thing",
        plural: "things",
        scope: Scope::Namespaced,
        indexes: &[&BY_COLOUR],
        storage: Storage::Parts(&[&["colour"]]),
    };

    fn thing(name: &str, colour: &str) -> Value {
        json!({"apiVersion": "example.org/v1", "kind": "Thing", "colour": colour, "secret": "s",
               "metadata": {"name": name, "namespace": "ns"}})
    }

    #[test]
    fn indexes_follow_changes() {
        let catalog = Catalog::of([&THINGS], vec![thing("b", "red"), thing("a", "red")]);
        let red = |catalog: &Catalog| -> Vec<String> {
            catalog.indexed(&THINGS, &BY_COLOUR, "ns", "red", 10).iter().map(|o| o.name().to_owned()).collect()
        };
        assert_eq!(red(&catalog), ["a", "b"]);
        catalog.insert(&THINGS, thing("a", "blue"));
        assert_eq!(red(&catalog), ["b"]);
        catalog.remove(&THINGS, "ns", "b");
        assert_eq!(catalog.count(&THINGS, &BY_COLOUR, "ns", "red"), 0);
        assert_eq!(catalog.len(&THINGS), 1);
    }

    #[test]
    fn keeps_declared_parts_only() {
        let catalog = Catalog::of([&THINGS], vec![thing("a", "red")]);
        let kept = catalog.find(&THINGS, "ns", "a").unwrap();
        let mut whole = thing("a", "red");
        whole.as_object_mut().unwrap().remove("secret");
        assert_eq!((kept.name(), kept.value()), ("a", &whole));
        let catalog = Catalog::new([&THINGS]).with_whole_objects();
        catalog.replace_all(vec![thing("a", "red")]);
        assert_eq!(catalog.find(&THINGS, "ns", "a").unwrap().value(), &thing("a", "red"));
    }

    #[test]
    fn kinds_that_are_not_listed_are_pending() {
        let catalog = Catalog::new([&THINGS]);
        assert_eq!(catalog.pending().len(), 1);
        catalog.set_coverage(&THINGS, Coverage::Absent);
        assert!(catalog.pending().is_empty());
    }

    #[test]
    fn reserved_tables_do_not_grow() {
        let catalog = Catalog::of([&THINGS], Vec::new());
        let texts = |from: usize, to: usize| {
            (from..to).map(|number| thing(&format!("thing-{number}"), &format!("colour-{number}")).to_string())
        };
        let tables = || {
            let of = |store: &mut Store| (store.names.capacity(), store.indexes[0].capacity());
            catalog.write(&THINGS, of).unwrap()
        };
        let mut listing = catalog.list(&THINGS);
        texts(0, 500).for_each(|text| listing.add(&text));
        listing.expect(9_500);
        let reserved = tables();
        texts(500, 10_000).for_each(|text| listing.add(&text));
        listing.finish(Coverage::Complete);
        assert_eq!((tables(), catalog.len(&THINGS)), (reserved, 10_000));
        let mut listing = catalog.list(&THINGS);
        texts(0, 500).for_each(|text| listing.add(&text));
        listing.expect(9_500);
        assert_eq!(tables(), reserved, "listed again");
    }

    #[test]
    fn a_wrong_number_of_objects_reserves_nothing_for_long() {
        let catalog = Catalog::of([&THINGS], Vec::new());
        let mut listing = catalog.list(&THINGS);
        listing.add(&thing("a", "red").to_string());
        listing.expect(u64::MAX);
        assert!(catalog.size(&THINGS).bytes < 100 * MAX_RESERVED);
        listing.finish(Coverage::Complete);
        assert!(catalog.size(&THINGS).bytes < 1_000, "{:?}", catalog.size(&THINGS));
    }

    #[test]
    fn the_size_goes_back_to_where_it_was() {
        let catalog = Catalog::of([&THINGS], Vec::new());
        let empty = catalog.size(&THINGS);
        let many = || (0..1_000).map(|number| thing(&format!("thing-{number}"), &format!("colour-{}", number % 100)));
        catalog.replace(&THINGS, Coverage::Complete, many().collect());
        let full = catalog.size(&THINGS);
        assert_eq!((empty.objects, full.objects), (0, 1_000));
        assert!(full.bytes > 1_000 * 30 && full.bytes < 1_000 * 200, "{full:?}");
        catalog.replace(&THINGS, Coverage::Complete, many().collect());
        assert_eq!(catalog.size(&THINGS), full, "listed again");
        catalog.replace(&THINGS, Coverage::Complete, Vec::new());
        assert_eq!(catalog.size(&THINGS).objects, 0);
        assert!(catalog.size(&THINGS).bytes <= empty.bytes + 500, "{:?}", catalog.size(&THINGS));
    }
}
