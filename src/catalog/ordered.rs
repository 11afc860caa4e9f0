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
///
/// While a kind is listed for the first time, ids are only appended, and the list is sorted at the end of the listing.
/// A search for the position of each id would read a dozen names from all over the memory.
#[derive(Debug, Default)]
pub(super) struct Ordered {
    chunks: Vec<Vec<Id>>,
    length: usize,
    /// Whether ids were appended in another order than the order of the names.
    is_unsorted: bool,
}

impl Ordered {
    /// Returns the number of ids.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Returns the ids. They are sorted by name, unless ids were appended since [`Ordered::sort`] was called.
    pub(super) fn iter(&self) -> impl Iterator<Item = Id> {
        self.chunks.iter().flatten().copied()
    }

    /// Appends the id of a new object, which the list may contain only as its last id. Afterwards, the list may be
    /// unsorted.
    pub(super) fn append(&mut self, id: Id, records: &Records) {
        if let Some(last) = self.chunks.last().and_then(|chunk| chunk.last()).copied() {
            if last == id {
                return;
            }
            self.is_unsorted = self.is_unsorted || records.name_bytes(last) > records.name_bytes(id);
        }
        match self.chunks.last_mut().filter(|chunk| chunk.len() < CHUNK) {
            Some(chunk) => push(chunk, chunk.len(), id),
            None => self.chunks.push(vec![id]),
        }
        self.length += 1;
    }

    /// Sorts the ids by name, if ids were appended in another order.
    pub(super) fn sort(&mut self, records: &Records) {
        if !std::mem::take(&mut self.is_unsorted) {
            return;
        }
        let mut named: Vec<_> = self.iter().map(|id| (records.name_bytes(id), id)).collect();
        named.sort_unstable();
        let places = self.chunks.iter_mut().flatten();
        places.zip(named).for_each(|(place, (_, id))| *place = id);
    }

    /// Adds the id of a stored object. Returns false if the list already contains the id.
    pub(super) fn insert(&mut self, id: Id, records: &Records) -> bool {
        if self.is_unsorted {
            let is_new = self.locate(id).is_none();
            if is_new {
                self.append(id, records);
            }
            return is_new;
        }
        let (at, place) = self.find(records.name_bytes(id), records);
        let Some(chunk) = self.chunks.get_mut(at) else {
            self.chunks.push(vec![id]);
            self.length = 1;
            return true;
        };
        let Err(place) = place else { return false };
        push(chunk, place, id);
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
        let found = if self.is_unsorted {
            self.locate(id)
        } else {
            let (at, place) = self.find(records.name_bytes(id), records);
            place.ok().map(|place| (at, place))
        };
        let Some((at, place)) = found else { return false };
        let Some(chunk) = self.chunks.get_mut(at) else { return false };
        chunk.remove(place);
        self.length -= 1;
        if chunk.is_empty() {
            self.chunks.remove(at);
        }
        true
    }

    /// Searches an unsorted list for an id. Returns the index of its chunk, and its position in this chunk.
    fn locate(&self, id: Id) -> Option<(usize, usize)> {
        let chunks = self.chunks.iter().enumerate();
        chunks.filter_map(|(at, chunk)| Some((at, chunk.iter().position(|known| *known == id)?))).next()
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

/// Inserts `id` at the position `at` of a chunk. If the chunk is full, its capacity grows by [`GROWTH`].
fn push(chunk: &mut Vec<Id>, at: usize, id: Id) {
    if chunk.len() == chunk.capacity() {
        chunk.reserve_exact(GROWTH);
    }
    chunk.insert(at, id);
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

    #[test]
    fn appended_ids_are_sorted_once() {
        let (records, mut ordered) = (records(1_000), Ordered::default());
        for id in records.ids() {
            (0..2).for_each(|_| ordered.append(id, &records));
        }
        assert!(ordered.iter().eq(records.ids()), "the ids are not sorted yet");
        ordered.sort(&records);
        check(&ordered, &records);
        assert_eq!(ordered.len(), 1_000);
    }

    proptest! {
        #[test]
        fn appended_ids_can_be_removed_and_inserted(count in 0_usize..600, removed in proptest::collection::vec(0_u32..600, 0..9)) {
            let (records, mut ordered) = (records(count), Ordered::default());
            records.ids().for_each(|id| ordered.append(id, &records));
            let mut known: std::collections::HashSet<_> = records.ids().collect();
            for id in removed {
                prop_assert_eq!(ordered.remove(id, &records), known.remove(&id));
                if records.namespace_and_name(id).is_some() {
                    prop_assert_eq!(ordered.insert(id, &records), known.insert(id));
                }
            }
            ordered.sort(&records);
            check(&ordered, &records);
            prop_assert_eq!(ordered.len(), known.len());
        }

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
