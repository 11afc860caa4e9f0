//! The entries of one index, in a compact form.
//!
//! An entry contains only the hash of its key. Most keys have only one object, so storing the keys would take most of
//! the memory. The hash has 64 bits and a random seed, so nobody can choose keys that collide. With a million keys, the
//! probability of a collision by chance is less than one in ten million.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::ordered::Ordered;
use super::records::{Id, Records};

/// The entry of an index for a key with only one object: the hash of the key, and the id of the object. The struct is
/// packed, because an index may have a million of these entries. With padding, an entry would take 16 bytes instead of
/// 12.
#[derive(Debug, Clone, Copy)]
#[repr(Rust, packed(4))]
struct Single {
    hash: u64,
    id: Id,
}

/// The ids of the objects that have the same key in an index, if there are at least two. Up to three ids need no
/// allocation.
#[derive(Debug)]
enum Posting {
    Two([Id; 2]),
    Three([Id; 3]),
    Many(Box<Ordered>),
}

impl Posting {
    /// Returns the ids that are stored inline, sorted by the names of the objects. Returns an empty slice for a list of
    /// more than three ids, which is stored on the heap.
    fn few(&self) -> &[Id] {
        match self {
            Self::Two(ids) => ids,
            Self::Three(ids) => ids,
            Self::Many(_) => &[],
        }
    }

    fn many(&self) -> Option<&Ordered> {
        if let Self::Many(many) = self { Some(many) } else { None }
    }

    fn len(&self) -> usize {
        self.many().map_or_else(|| self.few().len(), Ordered::len)
    }

    fn iter(&self) -> impl Iterator<Item = Id> {
        self.few().iter().copied().chain(self.many().into_iter().flat_map(Ordered::iter))
    }

    /// Creates the entry for a key with two objects. Sorts their ids by the names of the objects.
    fn two(one: Id, other: Id, records: &Records) -> Self {
        let mut ids = [one, other];
        ids.sort_by_key(|id| records.name_bytes(*id));
        Self::Two(ids)
    }

    fn insert(&mut self, id: Id, records: &Records) {
        if let Self::Many(many) = self {
            many.insert(id, records);
            return;
        }
        self.insert_few(id, records);
    }

    /// Adds the id of a new object, like [`Posting::insert`], but without a search in a list of more than three ids.
    /// Afterwards, such a list may be unsorted.
    fn append(&mut self, id: Id, records: &Records) {
        if let Self::Many(many) = self {
            many.append(id, records);
            return;
        }
        self.insert_few(id, records);
    }

    fn insert_few(&mut self, id: Id, records: &Records) {
        let mut ids = self.few().to_vec();
        let Err(place) = ids.binary_search_by(|known| records.name_bytes(*known).cmp(records.name_bytes(id))) else {
            return;
        };
        ids.insert(place, id);
        *self = <[Id; 3]>::try_from(ids.as_slice())
            .map_or_else(|_| Self::Many(Box::new(ordered(&ids, records))), Self::Three);
    }

    /// Removes an object from this list of ids. If only one object remains, returns the id of this object. Otherwise
    /// returns `None`.
    fn remove(&mut self, id: Id, records: &Records) -> Option<Id> {
        if let Self::Many(many) = self {
            many.remove(id, records);
            return if many.len() == 1 { many.iter().next() } else { None };
        }
        let rest: Vec<_> = self.few().iter().copied().filter(|known| *known != id).collect();
        match *rest {
            [one] => return Some(one),
            [one, two] => *self = Self::Two([one, two]),
            _ => {}
        }
        None
    }
}

/// Returns a list on the heap with the same ids, sorted by the names of the objects.
fn ordered(ids: &[Id], records: &Records) -> Ordered {
    let mut ordered = Ordered::default();
    for id in ids {
        ordered.insert(*id, records);
    }
    ordered
}

/// A hasher that returns its input unchanged. It is for maps whose keys are already hashes.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// One index of stored objects. It maps the hash of a namespace and a search key to the ids of the objects that have
/// this key. For example, a search key is a label of an object.
#[derive(Debug, Default)]
pub(super) struct Postings {
    /// The entries for keys with exactly one object.
    single: HashTable<Single>,
    /// The entries for keys with several objects, by the hash of the key.
    several: HashMap<u64, Posting, BuildHasherDefault<Hashed>>,
    /// Total number of object ids that are stored on the heap. These are the ids under keys with more than three
    /// objects. The memory size of the index is computed from this number.
    shared: usize,
}

/// Estimated heap memory per object id in an index, in bytes. It applies only to index keys with more than three
/// objects. The ids of up to three objects are stored without heap memory.
const SHARED_BYTES: usize = 6;

impl Postings {
    /// Adds an object to the index under the key with this hash. `id` is the id of the object's record.
    pub(super) fn insert(&mut self, hash: u64, id: Id, records: &Records) {
        self.add(hash, id, records, Posting::insert);
    }

    /// Adds a new object to the index, like [`Postings::insert`], but faster. Until [`Postings::sort`] is called, the
    /// ids of a key may be unsorted.
    pub(super) fn append(&mut self, hash: u64, id: Id, records: &Records) {
        self.add(hash, id, records, Posting::append);
    }

    /// Sorts the ids of each key, after objects were added with [`Postings::append`].
    pub(super) fn sort(&mut self, records: &Records) {
        for posting in self.several.values_mut() {
            if let Posting::Many(many) = posting {
                many.sort(records);
            }
        }
    }

    /// Adds an object to the index. `add` adds its id to the ids of a key that already has several objects.
    fn add(&mut self, hash: u64, id: Id, records: &Records, add: fn(&mut Posting, Id, &Records)) {
        if let Some(posting) = self.several.get_mut(&hash) {
            let before = shared(posting);
            add(posting, id, records);
            self.shared = self.shared + shared(posting) - before;
            return;
        }
        match self.single.entry(hash, |single| single.hash == hash, |single| single.hash) {
            Entry::Vacant(place) => drop(place.insert(Single { hash, id })),
            Entry::Occupied(known) if known.get().id == id => {}
            Entry::Occupied(known) => {
                let (known, _) = known.remove();
                self.several.insert(hash, Posting::two(known.id, id, records));
            }
        }
    }

    /// Removes an object from the index. `hash` is the hash of the key under which the index contains the object. `id`
    /// is the id of the object's record, which must still exist in `records`.
    pub(super) fn remove(&mut self, hash: u64, id: Id, records: &Records) {
        let Some(posting) = self.several.get_mut(&hash) else {
            if let Ok(known) = self.single.find_entry(hash, |single| single.hash == hash && single.id == id) {
                known.remove();
            }
            return;
        };
        let before = shared(posting);
        let last = posting.remove(id, records);
        self.shared = self.shared + shared(posting) - before;
        if let Some(last) = last {
            self.shared -= self.several.remove(&hash).as_ref().map_or(0, shared);
            self.insert(hash, last, records);
        }
    }

    /// Returns the ids of the objects under the index key with this hash. The ids are sorted by the names of the
    /// objects.
    pub(super) fn get(&self, hash: u64) -> impl Iterator<Item = Id> {
        self.single(hash).into_iter().chain(self.several.get(&hash).into_iter().flat_map(Posting::iter))
    }

    /// Returns the number of objects under the key with this hash.
    pub(super) fn count(&self, hash: u64) -> usize {
        self.single(hash).map_or_else(|| self.several.get(&hash).map_or(0, Posting::len), |_| 1)
    }

    fn single(&self, hash: u64) -> Option<Id> {
        self.single.find(hash, |single| single.hash == hash).map(|single| single.id)
    }

    /// Returns the size of the index in bytes.
    pub(super) fn size(&self) -> usize {
        let single = self.single.capacity() * (size_of::<Single>() + 1);
        let several = self.several.capacity() * (size_of::<(u64, Posting)>() + 1);
        single + several + self.shared * SHARED_BYTES
    }

    /// Reserves memory for the keys of `more` new objects. `stored` is the number of objects in the index. Estimates
    /// the number of new keys from the average number of keys of the stored objects. Each of the two tables of the
    /// index gets memory for at most `more` new keys. Without this maximum, a stored object with very many keys would
    /// cause a large reservation.
    pub(super) fn reserve(&mut self, more: usize, stored: usize) {
        let keys = |stored_keys: usize| more.min(more.saturating_mul(stored_keys) / stored.max(1));
        self.single.reserve(keys(self.single.len()), |single| single.hash);
        self.several.reserve(keys(self.several.len()));
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.single.capacity() + self.several.capacity()
    }

    /// Frees unused capacity of the index. Call it after many objects were removed.
    pub(super) fn shrink(&mut self) {
        if self.single.capacity() > 4 * self.single.len() {
            self.single.shrink_to_fit(|single| single.hash);
        }
        if self.several.capacity() > 4 * self.several.len() {
            self.several.shrink_to_fit();
        }
    }
}

/// Returns the number of ids that an index entry stores on the heap. Returns 0 for up to three ids, which are stored
/// inline.
fn shared(posting: &Posting) -> usize {
    posting.many().map_or(0, Ordered::len)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::record::Compressed;
    use super::*;

    #[test]
    fn a_key_has_any_number_of_objects() {
        let (mut records, mut postings) = (Records::default(), Postings::default());
        for number in (0..1_000).rev() {
            let bytes = Compressed::text("{}", None).unwrap().record(0, &format!("{number:04}"));
            let id = records.insert(&bytes).unwrap();
            (0..2).for_each(|_| postings.insert(7, id, &records));
            assert_eq!(postings.count(7), records.len());
        }
        let sorted: Vec<_> = (0..1_000).rev().collect();
        assert_eq!(postings.get(7).collect::<Vec<_>>(), sorted);
        assert_eq!(postings.count(8), 0);
        for id in records.ids().collect::<Vec<_>>() {
            postings.remove(7, id, &records);
            records.remove(id);
            assert_eq!(postings.count(7), records.len());
        }
        postings.shrink();
        assert_eq!(postings.size(), 0);
    }

    #[test]
    fn one_object_with_many_keys_reserves_little() {
        let (records, mut postings) = (Records::default(), Postings::default());
        (0..1_000).for_each(|key| postings.insert(key, 0, &records));
        postings.reserve(5_000, 1);
        assert!(postings.capacity() < 20_000, "{}", postings.capacity());
    }

    #[test]
    fn entries_are_small() {
        assert_eq!((size_of::<Single>(), size_of::<(u64, Posting)>()), (12, 24));
    }

    proptest! {
        #[test]
        fn has_the_objects_of_each_key(steps in proptest::collection::vec((0_u64..3, 0_usize..9, any::<bool>()), 0..200)) {
            let (mut records, mut postings) = (Records::default(), Postings::default());
            let names: Vec<_> = (0..9).map(|number| format!("{}", (number * 5) % 9)).collect();
            let mut insert = |name| records.insert(&Compressed::text("{}", None).unwrap().record(0, name)).unwrap();
            let ids: Vec<_> = names.iter().map(|name| insert(name)).collect();
            let mut expected = [const { BTreeMap::new() }; 3];
            for (hash, number, inserts) in steps {
                let (key, id) = (&mut expected[hash as usize], ids[number]);
                if inserts {
                    key.insert(&names[number], id);
                    postings.insert(hash, id, &records);
                } else if key.remove(&names[number]).is_some() {
                    postings.remove(hash, id, &records);
                }
                prop_assert_eq!(postings.get(hash).collect::<Vec<_>>(), key.values().copied().collect::<Vec<_>>());
                prop_assert_eq!(postings.count(hash), key.len());
                let shared: usize = expected.iter().map(BTreeMap::len).filter(|count| *count > 3).sum();
                prop_assert!(postings.shared >= shared && postings.shared <= shared + 9, "{}", postings.shared);
            }
        }
    }
}
