//! The entries of one index, in a compact form.
//!
//! An entry contains only the hash of its key. Most keys have only one object, so storing the keys would take most of
//! the memory. The hash has 64 bits and a random seed, so nobody can choose keys that collide. With a million keys, the
//! probability of a collision by chance is less than one in ten million.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::ordered::Ordered;
use super::records::{Id, Records};

/// The ids of the objects that an index has under one key. Up to three ids need no allocation.
#[derive(Debug)]
enum Posting {
    One(Id),
    Two([Id; 2]),
    Three([Id; 3]),
    Many(Box<Ordered>),
}

impl Posting {
    /// Returns the ids that are stored inline, sorted by the names of the objects. Returns an empty slice for a list of
    /// more than three ids, which is stored on the heap.
    fn few(&self) -> &[Id] {
        match self {
            Self::One(id) => std::slice::from_ref(id),
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

    /// Creates the list of ids under one key of an index. `ids` must be sorted by the names of the objects. Returns
    /// `None` if `ids` is empty.
    fn of(ids: &[Id], records: &Records) -> Option<Self> {
        match ids {
            [] => None,
            [one] => Some(Self::One(*one)),
            [one, two] => Some(Self::Two([*one, *two])),
            [one, two, three] => Some(Self::Three([*one, *two, *three])),
            many => {
                let mut ordered = Ordered::default();
                for id in many {
                    ordered.insert(*id, records);
                }
                Some(Self::Many(Box::new(ordered)))
            }
        }
    }

    fn insert(&mut self, id: Id, records: &Records) {
        if let Self::Many(many) = self {
            many.insert(id, records);
            return;
        }
        let mut ids = self.few().to_vec();
        if let Err(place) = ids.binary_search_by(|known| records.name_bytes(*known).cmp(records.name_bytes(id))) {
            ids.insert(place, id);
            *self = Self::of(&ids, records).unwrap_or(Self::One(id));
        }
    }

    /// Removes an object from this list of ids. Returns whether the list is then empty.
    fn remove(&mut self, id: Id, records: &Records) -> bool {
        if let Self::Many(many) = self {
            many.remove(id, records);
            return many.len() == 0;
        }
        let rest: Vec<_> = self.few().iter().copied().filter(|known| *known != id).collect();
        match Self::of(&rest, records) {
            Some(rest) => *self = rest,
            None => return true,
        }
        false
    }
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
    postings: HashMap<u64, Posting, BuildHasherDefault<Hashed>>,
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
        let Some(posting) = self.postings.get_mut(&hash) else {
            self.postings.insert(hash, Posting::One(id));
            return;
        };
        let before = shared(posting);
        posting.insert(id, records);
        self.shared = self.shared + shared(posting) - before;
    }

    /// Removes an object from the index key that has the hash `hash`. `id` is the id of the object's record, which must
    /// still exist.
    pub(super) fn remove(&mut self, hash: u64, id: Id, records: &Records) {
        let Some(posting) = self.postings.get_mut(&hash) else { return };
        let before = shared(posting);
        if posting.remove(id, records) {
            self.postings.remove(&hash);
            self.shared -= before;
        } else {
            self.shared = self.shared + shared(posting) - before;
        }
    }

    /// Returns the ids of the objects under the index key with this hash. The ids are sorted by the names of the
    /// objects.
    pub(super) fn get(&self, hash: u64) -> impl Iterator<Item = Id> {
        self.postings.get(&hash).into_iter().flat_map(Posting::iter)
    }

    /// Returns the number of objects under the key with this hash.
    pub(super) fn count(&self, hash: u64) -> usize {
        self.postings.get(&hash).map_or(0, Posting::len)
    }

    /// Returns the size of the index in bytes.
    pub(super) fn size(&self) -> usize {
        self.postings.capacity() * (size_of::<(u64, Posting)>() + 1) + self.shared * SHARED_BYTES
    }

    /// Reserves memory for the keys of `more` objects. Assumes that they have as many keys as the `stored` objects, but
    /// at most one key each: otherwise, one stored object with very many keys would reserve memory without limit.
    pub(super) fn reserve(&mut self, more: usize, stored: usize) {
        let keys = more.saturating_mul(self.postings.len()) / stored.max(1);
        self.postings.reserve(keys.min(more));
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.postings.capacity()
    }

    /// Frees unused capacity of the index. Call it after many objects were removed.
    pub(super) fn shrink(&mut self) {
        if self.postings.capacity() > 4 * self.postings.len() {
            self.postings.shrink_to_fit();
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
    fn an_entry_has_24_bytes() {
        assert_eq!(size_of::<(u64, Posting)>(), 24);
    }
}
