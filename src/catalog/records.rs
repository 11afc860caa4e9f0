//! Stores the objects of one kind in large blocks of memory. A record is one encoded object.
//!
//! Indexes refer to a record by a 32-bit id. Records are appended to a block. So a record needs no allocation or
//! reference count of its own. If a record is replaced or removed, it leaves a hole. When the holes take more than a
//! quarter of the size of all records, the block with the most holes is compacted.

use super::record::{NamespaceId, Record};

/// Maximum size, in bytes, of a memory block that several stored objects share. Larger blocks would make compaction
/// copy more, because it copies all objects of a block. They would also leave more unused space in the block to which
/// new objects are appended.
const BLOCK_BYTES: usize = 64 * 1024;
/// Maximum size of a record (an encoded object) in a shared block. A longer one gets a block of its own.
const MAX_SHARED_BYTES: usize = BLOCK_BYTES / 8;
/// Minimum total size of the holes in memory blocks, in bytes. Blocks are compacted only if the holes exceed this size.
/// A hole is the space of a removed or replaced object.
const MIN_HOLES: usize = BLOCK_BYTES;
/// Limit for the total size of holes in memory blocks, as a divisor of the size of all stored objects. With the value
/// 4, blocks are compacted if the holes exceed a quarter of this size, and also exceed `MIN_HOLES`. A hole is the space
/// of a removed or replaced object.
const MAX_HOLES_RATIO: usize = 4;

/// The id by which indexes refer to the record of an object.
pub(super) type Id = u32;

/// The location of a stored object in memory. `block` is the number of a block, which is a large piece of memory with
/// many objects. `offset` is the position in this block, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    block: u32,
    offset: u32,
}

impl Place {
    /// The placeholder that is stored as the location for an unused id.
    const NONE: Self = Self { block: u32::MAX, offset: 0 };
}

#[derive(Debug, Default)]
struct Block {
    bytes: Vec<u8>,
    /// Number of bytes of this block that stored objects use. The other bytes are holes.
    used: usize,
}

impl Block {
    fn holes(&self) -> usize {
        self.bytes.len() - self.used
    }
}

/// All stored objects of one kind in encoded form, by id.
#[derive(Debug, Default)]
pub(super) struct Records {
    places: Vec<Place>,
    unused: Vec<Id>,
    blocks: Vec<Block>,
    empty_blocks: Vec<u32>,
    /// The number of the block to which objects are appended; `None` before the first object.
    open: Option<u32>,
    used: usize,
    holes: usize,
    /// One bit for each object id. It is set if the current list response of the API server contains the object. When
    /// the list is complete, the objects without a set bit are removed, because they no longer exist in the cluster.
    seen: Vec<u64>,
}

impl Records {
    /// Returns the number of stored objects.
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.unused.len()
    }

    /// Returns the memory size of all stored objects, in bytes.
    pub(super) fn size(&self) -> usize {
        self.used + self.holes + self.places.len() * size_of::<Place>() + self.seen.len() * size_of::<u64>()
    }

    /// Returns whether more than three quarters of the object ids are unused.
    pub(super) fn is_sparse(&self) -> bool {
        self.places.len() > 4 * self.len()
    }

    /// Returns the decoded record of the object with this id, and the bytes of the record. `None` if the id is unused.
    pub(super) fn get(&self, id: Id) -> Option<(Record<'_>, &[u8])> {
        let bytes = self.bytes_from(id)?;
        let record = Record::read(bytes)?;
        Some((record, bytes.get(..record.length)?))
    }

    /// Returns the namespace and the name of the stored object with this id; `None` if the id is unused. The namespace
    /// is an integer id. The name is UTF-8 text.
    pub(super) fn namespace_and_name(&self, id: Id) -> Option<(NamespaceId, &[u8])> {
        Record::read_name(self.bytes_from(id)?)
    }

    /// Returns the name of the stored object with this id, as UTF-8 bytes. The bytes sort in the same order as the
    /// text. Empty if the id is unused.
    pub(super) fn name_bytes(&self, id: Id) -> &[u8] {
        self.namespace_and_name(id).map(|(_, name)| name).unwrap_or_default()
    }

    /// Returns the bytes of a block from the start of an object to the end of the block. So the result also contains
    /// the objects after this one. `None` if the id is unused.
    fn bytes_from(&self, id: Id) -> Option<&[u8]> {
        let place = self.places.get(at(id))?;
        self.blocks.get(at(place.block))?.bytes.get(at(place.offset)..)
    }

    /// Returns the ids of all stored objects.
    pub(super) fn ids(&self) -> impl Iterator<Item = Id> {
        let used = self.places.iter().zip(0..).filter(|(place, _)| **place != Place::NONE);
        used.map(|(_, id)| id)
    }

    /// Reserves memory for the locations of `more` additional objects. Does not reserve memory for the encoded objects.
    pub(super) fn reserve(&mut self, more: usize) {
        self.places.reserve_exact(more);
        self.seen.reserve_exact(more / 64);
    }

    /// Shrinks the memory that is reserved for locations, if more than half of this memory is unused.
    pub(super) fn shrink(&mut self) {
        if self.places.capacity() > 2 * self.places.len() {
            self.places.shrink_to_fit();
            self.seen.shrink_to_fit();
        }
    }

    /// Adds an encoded object and returns its id; `None` if all 4 billion ids are used.
    pub(super) fn insert(&mut self, record: &[u8]) -> Option<Id> {
        let place = self.write(record)?;
        if let Some(id) = self.unused.pop() {
            *self.places.get_mut(at(id))? = place;
            return Some(id);
        }
        let id = Id::try_from(self.places.len()).ok()?;
        if self.places.len() == self.places.capacity() {
            // Doubling the capacity would leave up to half of it unused.
            self.places.reserve_exact(self.places.len() / 8 + 16);
        }
        self.places.push(place);
        self.seen.resize(self.places.len().div_ceil(64), 0);
        Some(id)
    }

    /// Stores `record` as the new encoded content of the object with this id. The id stays the same.
    pub(super) fn replace(&mut self, id: Id, record: &[u8]) {
        self.free(id);
        if let (Some(place), Some(known)) = (self.write(record), self.places.get_mut(at(id))) {
            *known = place;
        }
        self.fill_holes();
    }

    /// Removes the stored object with this id.
    pub(super) fn remove(&mut self, id: Id) {
        self.free(id);
        if let Some(place) = self.places.get_mut(at(id)) {
            *place = Place::NONE;
            self.unused.push(id);
        }
        self.fill_holes();
    }

    /// Marks an object as contained in the current listing.
    pub(super) fn see(&mut self, id: Id) {
        if let Some(bits) = self.seen.get_mut(at(id) / 64) {
            *bits |= 1 << (id % 64);
        }
    }

    /// Marks every stored object as not yet listed. Called when a new listing of all objects of the kind begins.
    pub(super) fn unsee_all(&mut self) {
        self.seen.fill(0);
    }

    /// Returns whether the object with this id was received since the last listing began.
    pub(super) fn is_seen(&self, id: Id) -> bool {
        self.seen.get(at(id) / 64).is_some_and(|bits| bits & (1 << (id % 64)) != 0)
    }

    fn write(&mut self, record: &[u8]) -> Option<Place> {
        let open = self.open.and_then(|open| self.blocks.get(at(open)));
        let has_room = open.is_some_and(|open| open.bytes.len() + record.len() <= open.bytes.capacity());
        let block = match self.open {
            Some(open) if has_room => open,
            _ if record.len() > MAX_SHARED_BYTES => self.add_block(record.len())?,
            _ => {
                // The first blocks of a kind with few objects are small.
                let block = self.add_block(self.used.next_power_of_two().clamp(MAX_SHARED_BYTES, BLOCK_BYTES))?;
                self.open = Some(block);
                block
            }
        };
        let written = self.blocks.get_mut(at(block))?;
        let offset = u32::try_from(written.bytes.len()).ok()?;
        written.bytes.extend(record);
        written.used += record.len();
        self.used += record.len();
        Some(Place { block, offset })
    }

    fn add_block(&mut self, capacity: usize) -> Option<u32> {
        let block = Block { bytes: Vec::with_capacity(capacity), used: 0 };
        if let Some(number) = self.empty_blocks.pop() {
            *self.blocks.get_mut(at(number))? = block;
            return Some(number);
        }
        let number = u32::try_from(self.blocks.len()).ok().filter(|number| *number != Place::NONE.block)?;
        self.blocks.push(block);
        Some(number)
    }

    /// Frees the space of a stored object. The space becomes a hole in its block.
    fn free(&mut self, id: Id) {
        let Some((record, _)) = self.get(id) else { return };
        let length = record.length;
        let Some(Place { block, .. }) = self.places.get(at(id)).copied() else { return };
        if let Some(known) = self.blocks.get_mut(at(block)) {
            known.used -= length;
            self.used -= length;
            self.holes += length;
            if known.used == 0 {
                self.drop_block(block);
            }
        }
    }

    fn drop_block(&mut self, number: u32) {
        if let Some(block) = self.blocks.get_mut(at(number)) {
            self.holes -= block.holes();
            *block = Block::default();
            self.empty_blocks.push(number);
            self.open = self.open.filter(|open| *open != number);
        }
    }

    /// Compacts blocks until the total size of holes is below its limit. Begins with the blocks that have the most
    /// holes.
    fn fill_holes(&mut self) {
        while self.holes > MIN_HOLES.max(self.used / MAX_HOLES_RATIO) {
            let blocks = self.blocks.iter().zip(0..).filter(|(block, _)| block.holes() > 0);
            let Some((_, number)) = blocks.max_by_key(|(block, _)| block.holes()) else { return };
            self.open = self.open.filter(|open| *open != number);
            self.move_records(number);
        }
    }

    /// Moves the objects in a block to other blocks, and frees the block.
    fn move_records(&mut self, number: u32) {
        let Some(block) = self.blocks.get_mut(at(number)).map(std::mem::take) else { return };
        self.used -= block.used;
        self.holes -= block.holes();
        for id in 0..self.places.len() {
            let Some(place) = self.places.get(id).filter(|place| place.block == number) else { continue };
            let bytes = block.bytes.get(at(place.offset)..).unwrap_or_default();
            let record = Record::read(bytes).and_then(|record| bytes.get(..record.length)).unwrap_or_default();
            if let (Some(moved), Some(place)) = (self.write(record), self.places.get_mut(id)) {
                *place = moved;
            }
        }
        self.empty_blocks.push(number);
    }
}

fn at(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::super::record::Compressed;
    use super::*;

    fn record(name: &str, length: usize) -> Vec<u8> {
        // Random digits cannot be compressed to nothing.
        let text: String =
            (0..length as u32).map(|at| char::from(b'a' + (at.wrapping_mul(2_654_435_761) >> 28) as u8)).collect();
        Compressed::text(&text, None).unwrap().record(7, name)
    }

    fn check(records: &Records, known: &HashMap<Id, Vec<u8>>) {
        assert_eq!(records.len(), known.len());
        known.iter().for_each(|(id, bytes)| assert_eq!(records.get(*id).unwrap().1, bytes));
        let (used, all): (Vec<_>, Vec<_>) = records.blocks.iter().map(|block| (block.used, block.bytes.len())).unzip();
        assert_eq!(used.iter().sum::<usize>(), known.values().map(Vec::len).sum::<usize>());
        assert_eq!((records.used, records.used + records.holes), (used.iter().sum(), all.iter().sum()));
        assert!(records.holes <= MIN_HOLES.max(records.used / MAX_HOLES_RATIO));
        let mut ids: Vec<_> = known.keys().copied().collect();
        ids.sort_unstable();
        assert_eq!(records.ids().collect::<Vec<_>>(), ids);
    }

    #[test]
    fn holes_are_bounded_while_objects_change() {
        let (mut records, mut known) = (Records::default(), HashMap::new());
        for number in 0..5_000 {
            let bytes = record(&format!("name-{number}"), 100);
            known.insert(records.insert(&bytes).unwrap(), bytes);
        }
        for change in 0..20_000_u32 {
            let id = change.wrapping_mul(7919) % 5_000;
            let bytes = record(&format!("name-{change}"), 60 + at(change) % 200);
            records.replace(id, &bytes);
            known.insert(id, bytes);
        }
        check(&records, &known);
        let capacity: usize = records.blocks.iter().map(|block| block.bytes.capacity()).sum();
        assert!(capacity < records.used * 14 / 10 + BLOCK_BYTES, "{capacity} for {}", records.used);
        (0..5_000).for_each(|id| records.remove(id));
        check(&records, &HashMap::new());
        assert_eq!((records.used, records.holes), (0, 0));
    }

    #[test]
    fn large_records_have_their_own_block() {
        let mut records = Records::default();
        let (small, large) = (record("small", 10), record("large", 1_000_000));
        let ids: Vec<_> = [&small, &large, &small].into_iter().map(|bytes| records.insert(bytes).unwrap()).collect();
        assert_eq!(records.get(ids[1]).unwrap().1, large);
        records.remove(ids[1]);
        assert_eq!((records.holes, records.len(), records.get(ids[2]).unwrap().1), (0, 2, &*small));
    }

    #[test]
    fn objects_are_seen_by_one_listing() {
        let mut records = Records::default();
        let ids: Vec<_> = (0..100).map(|_| records.insert(&record("a", 5)).unwrap()).collect();
        records.see(ids[70]);
        assert!(records.is_seen(ids[70]) && !records.is_seen(ids[69]));
        records.unsee_all();
        assert!(!records.is_seen(ids[70]));
    }

    proptest! {
        #[test]
        fn records_are_found_after_any_changes(changes in proptest::collection::vec((0_u32..60, 0_usize..3, 0_usize..20_000), 0..200)) {
            let (mut records, mut known) = (Records::default(), HashMap::new());
            for (number, what, length) in changes {
                let bytes = record(&number.to_string(), length);
                match (what, known.contains_key(&number)) {
                    (0, true) => {
                        records.remove(number);
                        known.remove(&number);
                    }
                    (_, true) => {
                        records.replace(number, &bytes);
                        known.insert(number, bytes);
                    }
                    (_, false) => drop(known.insert(records.insert(&bytes).unwrap(), bytes)),
                }
            }
            check(&records, &known);
        }
    }
}
