//! The objects of one kind, by name and by index.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::compression::{Dictionary, Samples};
use super::index::Postings;
use super::parts::{EVERYTHING, Part, Projection};
use super::record::Record;
use super::stored::{self, Held};
use super::{Index, Kind};

/// The coverage of a kind: how completely the catalog knows its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coverage {
    /// Not listed yet: that an object is not found says nothing.
    Pending,
    /// The cluster does not have the kind.
    Absent,
    /// Everything: an object that is not found does not exist.
    Complete,
}

/// The size of a kind in the catalog.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// Number of objects.
    pub objects: usize,
    /// The bytes that they and their indexes take.
    pub bytes: usize,
}

/// A change of the objects in a store.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) before: Option<Held>,
    pub(super) now: Option<Held>,
}

/// Which listing an object was seen in last.
type Generation = u32;
type Objects = HashMap<Record, Generation>;

pub(super) struct Store {
    kind: &'static Kind,
    part: Arc<Part>,
    coverage: Coverage,
    objects: HashMap<Arc<str>, Objects>,
    indexes: Vec<Postings>,
    samples: Samples,
    dictionary: Option<Arc<Dictionary>>,
    generation: Generation,
    count: usize,
    record_bytes: usize,
    /// Objects that could not be stored.
    rejected: u64,
}

impl Store {
    pub(super) fn new(kind: &'static Kind, is_whole: bool) -> Self {
        Self {
            kind,
            part: Arc::new(Part::of(if is_whole { EVERYTHING } else { kind.storage.parts() })),
            coverage: Coverage::Pending,
            objects: HashMap::new(),
            indexes: kind.indexes.iter().map(|_| Postings::default()).collect(),
            samples: Samples::default(),
            dictionary: None,
            generation: 0,
            count: 0,
            record_bytes: 0,
            rejected: 0,
        }
    }

    pub(super) fn reject(&mut self) {
        self.rejected += 1;
    }

    pub(super) fn rejected(&self) -> u64 {
        self.rejected
    }

    pub(super) fn part(&self) -> Arc<Part> {
        Arc::clone(&self.part)
    }

    pub(super) fn coverage(&self) -> Coverage {
        self.coverage
    }

    pub(super) fn set_coverage(&mut self, coverage: Coverage) {
        self.coverage = coverage;
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn size(&self) -> Size {
        let entry = size_of::<(Record, Generation)>() + 1;
        let tables: usize = self.objects.values().map(|objects| objects.capacity() * entry).sum();
        let indexes: usize = self.indexes.iter().map(Postings::size).sum();
        Size { objects: self.count, bytes: self.record_bytes + tables + indexes }
    }

    fn held(&self, namespace: &Arc<str>, record: &Record) -> Held {
        let (namespace, record) = (Arc::clone(namespace), record.clone());
        Held { kind: self.kind, namespace, record, dictionary: self.dictionary.clone() }
    }

    pub(super) fn contains(&self, namespace: &str, name: &str) -> bool {
        self.objects.get(namespace).is_some_and(|objects| objects.contains_key(name))
    }

    pub(super) fn find(&self, namespace: &str, name: &str) -> Option<Held> {
        let (namespace, objects) = self.objects.get_key_value(namespace)?;
        let (record, _) = objects.get_key_value(name)?;
        Some(self.held(namespace, record))
    }

    pub(super) fn all(&self) -> Vec<Held> {
        let records =
            self.objects.iter().flat_map(|(namespace, objects)| objects.keys().map(move |one| (namespace, one)));
        records.map(|(namespace, record)| self.held(namespace, record)).collect()
    }

    fn postings(&self, index: &'static Index) -> Option<&Postings> {
        self.indexes.get(self.kind.indexes.iter().position(|declared| std::ptr::eq(*declared, index))?)
    }

    pub(super) fn count(&self, index: &'static Index, namespace: &str, key: &str) -> usize {
        self.postings(index).map_or(0, |postings| postings.count(namespace, key))
    }

    /// Like [`Store::indexed`], in all namespaces.
    pub(super) fn indexed_everywhere(&self, index: &'static Index, key: &str, limit: usize) -> Vec<Held> {
        let mut namespaces: Vec<_> = self.objects.keys().collect();
        namespaces.sort_unstable();
        let mut found = Vec::new();
        for namespace in namespaces {
            if found.len() >= limit {
                break;
            }
            found.extend(self.indexed(index, namespace, key, limit - found.len()));
        }
        found
    }

    pub(super) fn indexed(&self, index: &'static Index, namespace: &str, key: &str, limit: usize) -> Vec<Held> {
        let Some((namespace, _)) = self.objects.get_key_value(namespace) else { return Vec::new() };
        let records = self.postings(index).into_iter().flat_map(|postings| postings.get(namespace, key));
        records.take(limit).map(|record| self.held(namespace, record)).collect()
    }

    /// Stores an object, and replaces the one with the same name. Returns the change; `None` if they are equal.
    pub(super) fn insert(&mut self, projection: &Projection) -> Option<Changed> {
        let record = Record::of(projection, self.dictionary.as_deref())?;
        let namespace = self.namespace(&projection.namespace);
        let generation = self.generation;
        let objects = self.objects.entry(Arc::clone(&namespace)).or_default();
        let before = objects.get_key_value(record.name()).map(|(known, _)| known.clone());
        if let Some(known) = &before
            && (known.is_same_as(&record) || known.text(self.dictionary.as_deref()) == projection.text)
        {
            objects.insert(record, generation);
            return None;
        }
        // The key of a map stays as it was when another value is inserted.
        objects.remove(record.name());
        objects.insert(record.clone(), generation);
        let before = before.map(|record| self.held(&namespace, &record));
        if let Some(before) = &before {
            self.unfile(before);
        }
        let now = self.held(&namespace, &record);
        self.file(&now, &projection.text);
        self.count += usize::from(before.is_none());
        self.record_bytes = self.record_bytes + record.size() - before.as_ref().map_or(0, |held| held.record.size());
        self.learn(&projection.text);
        Some(Changed { before, now: Some(now) })
    }

    pub(super) fn remove(&mut self, namespace: &str, name: &str) -> Option<Changed> {
        let (namespace, objects) = self.objects.get_key_value(namespace)?;
        let before = self.held(namespace, objects.get_key_value(name)?.0);
        let objects = self.objects.get_mut(&before.namespace)?;
        objects.remove(name);
        if objects.is_empty() {
            self.objects.remove(&before.namespace);
        }
        self.unfile(&before);
        self.count -= 1;
        self.record_bytes -= before.record.size();
        Some(Changed { before: Some(before), now: None })
    }

    /// Begins a list: objects that are not inserted until [`Store::finish_listing`] are removed.
    pub(super) fn begin_listing(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }

    /// Removes the objects that were not listed, and returns the changes.
    pub(super) fn finish_listing(&mut self, coverage: Coverage) -> Vec<Changed> {
        let now = self.generation;
        let of = |(namespace, objects): (&Arc<str>, &Objects)| {
            let gone = objects.iter().filter(|(_, seen)| **seen != now);
            gone.map(|(record, _)| (Arc::clone(namespace), record.clone())).collect::<Vec<_>>()
        };
        let gone: Vec<_> = self.objects.iter().flat_map(of).collect();
        let gone = gone.into_iter().filter_map(|(namespace, record)| self.remove(&namespace, record.name())).collect();
        self.coverage = coverage;
        self.indexes.iter_mut().for_each(Postings::shrink);
        self.objects
            .values_mut()
            .filter(|objects| objects.capacity() > 4 * objects.len())
            .for_each(Objects::shrink_to_fit);
        gone
    }

    /// Returns the shared text of a namespace.
    fn namespace(&self, namespace: &str) -> Arc<str> {
        let namespace = self.kind.scope.namespace(namespace);
        self.objects.get_key_value(namespace).map_or_else(|| namespace.into(), |(known, _)| Arc::clone(known))
    }

    fn file(&mut self, held: &Held, text: &str) {
        if self.indexes.is_empty() {
            return;
        }
        let object = stored::value(self.kind, &held.namespace, held.record.name(), text);
        for (index, postings) in self.kind.indexes.iter().zip(&mut self.indexes) {
            for key in (index.keys)(&object) {
                postings.insert(&held.namespace, &key, &held.record);
            }
        }
    }

    fn unfile(&mut self, held: &Held) {
        if self.indexes.is_empty() {
            return;
        }
        let object = held.value();
        for (index, postings) in self.kind.indexes.iter().zip(&mut self.indexes) {
            for key in (index.keys)(&object) {
                postings.remove(&held.namespace, &key, held.record.name());
            }
        }
    }

    /// Makes the dictionary of the first objects. Those are not compressed again.
    fn learn(&mut self, text: &str) {
        if self.dictionary.is_none() {
            self.dictionary = self.samples.add(text).map(Arc::new);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{Catalog, Scope, Storage};
    use super::*;

    static BY_COLOUR: Index = Index {
        name: "colour",
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
