//! The entries of one index, compactly.
//!
//! A key is not stored, only its hash: most keys have one object, and the key would be larger than all the rest. The hash
//! has 64 bits and is seeded at random, so nobody can choose two keys that collide, and among a million keys two do by
//! chance in one of ten million processes.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use super::record::Record;

/// The objects under one key.
enum Posting {
    One(Record),
    /// In the order of their names. Boxed, because most keys have one object, and an entry of the index is then half as large.
    #[expect(clippy::box_collection, reason = "halves the size of an entry")]
    Many(Box<BTreeSet<Record>>),
}

/// Takes a number that is a hash already.
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

/// Objects by namespace and key.
#[derive(Default)]
pub(super) struct Postings {
    seed: RandomState,
    postings: HashMap<u64, Posting, BuildHasherDefault<Hashed>>,
    /// How many records are in sets.
    in_sets: usize,
}

/// What an entry of a set takes, on average.
const SET_ENTRY_BYTES: usize = 23;

impl Postings {
    fn hash(&self, namespace: &str, key: &str) -> u64 {
        self.seed.hash_one((namespace, key))
    }

    /// Files an object under a key.
    pub(super) fn insert(&mut self, namespace: &str, key: &str, record: &Record) {
        let hash = self.hash(namespace, key);
        match self.postings.get_mut(&hash) {
            None => drop(self.postings.insert(hash, Posting::One(record.clone()))),
            Some(Posting::One(known)) if known == record => *known = record.clone(),
            Some(posting @ Posting::One(_)) => {
                let mut many = BTreeSet::from([record.clone()]);
                if let Posting::One(known) = posting {
                    many.insert(known.clone());
                }
                *posting = Posting::Many(Box::new(many));
                self.in_sets += 2;
            }
            Some(Posting::Many(many)) => self.in_sets += usize::from(many.replace(record.clone()).is_none()),
        }
    }

    /// Takes the object of that name out from under a key.
    pub(super) fn remove(&mut self, namespace: &str, key: &str, name: &str) {
        let hash = self.hash(namespace, key);
        let is_empty = match self.postings.get_mut(&hash) {
            None => false,
            Some(Posting::One(known)) => known.name() == name,
            Some(Posting::Many(many)) => {
                self.in_sets -= usize::from(many.remove(name));
                many.is_empty()
            }
        };
        if is_empty {
            self.postings.remove(&hash);
        }
    }

    /// Returns the objects under a key, in the order of their names.
    pub(super) fn get(&self, namespace: &str, key: &str) -> impl Iterator<Item = &Record> {
        let (one, many) = match self.postings.get(&self.hash(namespace, key)) {
            None => (None, None),
            Some(Posting::One(record)) => (Some(record), None),
            Some(Posting::Many(many)) => (None, Some(many.iter())),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    /// Returns how many objects are under a key.
    pub(super) fn count(&self, namespace: &str, key: &str) -> usize {
        match self.postings.get(&self.hash(namespace, key)) {
            None => 0,
            Some(Posting::One(_)) => 1,
            Some(Posting::Many(many)) => many.len(),
        }
    }

    /// Returns the bytes that it takes, without the records.
    pub(super) fn size(&self) -> usize {
        self.postings.capacity() * (size_of::<(u64, Posting)>() + 1) + self.in_sets * SET_ENTRY_BYTES
    }

    /// Returns memory after many objects went.
    pub(super) fn shrink(&mut self) {
        if self.postings.capacity() > 4 * self.postings.len() {
            self.postings.shrink_to_fit();
        }
    }
}
