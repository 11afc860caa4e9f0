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
    /// Boxed, because most keys have one object, and an entry of the index is then half as large.
    Many(Box<Many>),
}

/// Objects in the order of their names.
enum Many {
    /// At most [`FEW`].
    Few(Vec<Record>),
    Set(BTreeSet<Record>),
}

/// Up to so many objects a sorted list takes less memory than a tree, and is as fast.
const FEW: usize = 16;

impl Many {
    /// Adds an object, or replaces the one of its name; returns whether the name is new.
    fn insert(&mut self, record: &Record) -> bool {
        match self {
            Self::Set(set) => set.replace(record.clone()).is_none(),
            Self::Few(few) => match few.binary_search(record) {
                Ok(at) => {
                    few.splice(at..=at, [record.clone()]);
                    false
                }
                Err(_) if few.len() == FEW => {
                    *self = Self::Set(few.drain(..).chain([record.clone()]).collect());
                    true
                }
                Err(at) => {
                    few.reserve_exact(1);
                    few.insert(at, record.clone());
                    true
                }
            },
        }
    }

    /// Removes the object of that name; returns whether there was one.
    fn remove(&mut self, name: &str) -> bool {
        match self {
            Self::Set(set) => set.remove(name),
            Self::Few(few) => match few.binary_search_by(|record| record.name().cmp(name)) {
                Ok(at) => {
                    few.remove(at);
                    true
                }
                Err(_) => false,
            },
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Few(few) => few.len(),
            Self::Set(set) => set.len(),
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Record> {
        let (few, set) = match self {
            Self::Few(few) => (Some(few), None),
            Self::Set(set) => (None, Some(set)),
        };
        few.into_iter().flatten().chain(set.into_iter().flatten())
    }
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
    /// How many records share their key with others.
    shared: usize,
}

/// What a record that shares its key takes, on average.
const SHARED_BYTES: usize = 24;

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
                let mut many = Many::Few(vec![record.clone()]);
                if let Posting::One(known) = posting {
                    many.insert(known);
                }
                *posting = Posting::Many(Box::new(many));
                self.shared += 2;
            }
            Some(Posting::Many(many)) => self.shared += usize::from(many.insert(record)),
        }
    }

    /// Takes the object of that name out from under a key.
    pub(super) fn remove(&mut self, namespace: &str, key: &str, name: &str) {
        let hash = self.hash(namespace, key);
        let is_empty = match self.postings.get_mut(&hash) {
            None => false,
            Some(Posting::One(known)) => known.name() == name,
            Some(Posting::Many(many)) => {
                self.shared -= usize::from(many.remove(name));
                many.len() == 0
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
        self.postings.capacity() * (size_of::<(u64, Posting)>() + 1) + self.shared * SHARED_BYTES
    }

    /// Frees memory after many objects were removed.
    pub(super) fn shrink(&mut self) {
        if self.postings.capacity() > 4 * self.postings.len() {
            self.postings.shrink_to_fit();
        }
    }
}
