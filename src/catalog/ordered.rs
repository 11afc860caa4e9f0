//! A sorted list of object ids. An index uses it for a key that has many objects.

use super::records::{Id, Records};

/// Maximum number of ids in a chunk, which is a part of a sorted list of object ids. An insertion moves half of the ids
/// in a chunk on average.
const CHUNK: usize = 256;
/// Number of ids by which the capacity of a full chunk grows. A chunk is a part of a sorted list of object ids. A small
/// number leaves little memory unused.
const GROWTH: usize = 16;

/// A list of ids of stored objects, sorted by the names of the objects. It is divided into chunks, so that an insertion
/// moves only the ids of one chunk. Each id takes 4 bytes.
#[derive(Debug, Default)]
pub(super) struct Ordered {
    chunks: Vec<Vec<Id>>,
    length: usize,
}

impl Ordered {
    /// Returns the number of ids.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Returns the ids, sorted by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = Id> {
        self.chunks.iter().flatten().copied()
    }

    /// Adds the id of a stored object. Returns false if the list already contains the id.
    pub(super) fn insert(&mut self, id: Id, records: &Records) -> bool {
        let (at, place) = self.find(records.name_bytes(id), records);
        let Some(chunk) = self.chunks.get_mut(at) else {
            self.chunks.push(vec![id]);
            self.length = 1;
            return true;
        };
        let Err(place) = place else { return false };
        if chunk.len() == chunk.capacity() {
            chunk.reserve_exact(GROWTH);
        }
        chunk.insert(place, id);
        self.length += 1;
        if chunk.len() > CHUNK {
            // Listed objects arrive in the order of their names, so full chunks stay full.
            let middle = if at + 1 == self.chunks.len() { CHUNK } else { CHUNK / 2 };
            self.split(at, middle);
        }
        true
    }

    /// Removes the id of a stored object. Returns whether the list contained the id.
    pub(super) fn remove(&mut self, id: Id, records: &Records) -> bool {
        let (at, place) = self.find(records.name_bytes(id), records);
        let (Ok(place), Some(chunk)) = (place, self.chunks.get_mut(at)) else { return false };
        chunk.remove(place);
        self.length -= 1;
        if chunk.is_empty() {
            self.chunks.remove(at);
        }
        true
    }

    /// Finds a name by binary search. The first part of the result is the index of the chunk that should contain the
    /// name. The second part is a position in this chunk. It is `Ok` with the position of the name, or `Err` with the
    /// position at which to insert the name.
    fn find(&self, name: &[u8], records: &Records) -> (usize, Result<usize, usize>) {
        let begins_later = |chunk: &Vec<Id>| chunk.first().is_some_and(|first| records.name_bytes(*first) > name);
        let at = self.chunks.partition_point(|chunk| !begins_later(chunk)).saturating_sub(1);
        let chunk = self.chunks.get(at).map(Vec::as_slice).unwrap_or_default();
        (at, chunk.binary_search_by(|id| records.name_bytes(*id).cmp(name)))
    }

    fn split(&mut self, at: usize, middle: usize) {
        let Some(chunk) = self.chunks.get_mut(at) else { return };
        let rest = chunk.split_off(middle);
        self.chunks.insert(at + 1, rest);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::record::Compressed;
    use super::*;

    fn records(count: usize) -> Records {
        let mut records = Records::default();
        for number in 0..count {
            records.insert(&Compressed::text("{}", None).unwrap().record(0, &number.to_string())).unwrap();
        }
        records
    }

    fn check(ordered: &Ordered, records: &Records) {
        let names: Vec<_> = ordered.iter().map(|id| records.name_bytes(id)).collect();
        assert!(names.is_sorted(), "{names:?}");
        assert_eq!(names.len(), ordered.len());
        assert!(ordered.chunks.iter().all(|chunk| (1..=CHUNK).contains(&chunk.len())));
    }

    #[test]
    fn numbers_in_the_order_of_names_fill_their_chunks() {
        let (records, mut ordered) = (records(2_000), Ordered::default());
        let mut ids: Vec<_> = records.ids().collect();
        ids.sort_by_key(|id| records.name_bytes(*id).to_owned());
        assert!(ids.iter().all(|id| ordered.insert(*id, &records)));
        check(&ordered, &records);
        assert_eq!(ordered.chunks.len(), 2_000_usize.div_ceil(CHUNK));
    }

    proptest! {
        #[test]
        fn numbers_stay_in_order(changes in proptest::collection::vec((0_u32..1_500, any::<bool>()), 0..3_000)) {
            let (records, mut ordered) = (records(1_500), Ordered::default());
            let mut known = std::collections::HashSet::new();
            for (id, is_added) in changes {
                match is_added {
                    true => prop_assert_eq!(ordered.insert(id, &records), known.insert(id)),
                    false => prop_assert_eq!(ordered.remove(id, &records), known.remove(&id)),
                }
            }
            check(&ordered, &records);
            prop_assert_eq!(ordered.len(), known.len());
        }
    }
}
