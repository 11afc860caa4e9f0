//! Positions of the values in a YAML or JSON text. The positions are a tree that has the same structure as the parsed
//! value.

use crate::admission::field::{FieldPath, Segment};

/// A range of a text, with the line and column of its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// The 1-based line number of the start of the range.
    pub line: u32,
    /// The column of the start in characters, counted from one.
    pub column: u32,
    /// The byte offset of the start.
    pub start: usize,
    /// The byte offset after the last byte.
    pub end: usize,
}

/// A duplicate key in a mapping. kubectl uses the value of the last of the equal keys, without a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duplicate {
    /// The path of the entry with the duplicate key.
    pub path: FieldPath,
    /// The position of the first of two equal keys. Its value is ignored.
    pub lost: Place,
    /// The position of the second of two equal keys. Its value is used, unless the same key occurs again later in the
    /// mapping.
    pub kept: Place,
}

/// The position of a value, and of all values nested in it.
#[derive(Debug, Clone)]
pub(super) struct Spot {
    pub(super) place: Place,
    pub(super) kids: Kids,
}

#[derive(Debug, Clone)]
pub(super) enum Kids {
    None,
    List(Vec<Spot>),
    /// The entries of a mapping, sorted by key. Duplicate keys are in the order of the text, and the last entry is
    /// used.
    Map(Vec<Entry>),
}

/// The positions of an entry of a mapping.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: Box<str>,
    pub(super) key_place: Place,
    pub(super) spot: Spot,
    /// Whether the mapping entry comes from a merge key (`<<`) or an alias. Such an entry is not reported as a
    /// duplicate, even if its key occurs more than once.
    pub(super) merged: bool,
}

/// The deepest existing value on a path. [`Spot::reach`] returns it.
pub(super) struct Reached<'a> {
    pub(super) spot: &'a Spot,
    /// The mapping entry that contains the found value. `None` if the value is a list element or the root.
    pub(super) entry: Option<&'a Entry>,
    /// Whether the whole path exists. If `false`, `spot` is the position of the deepest value on the path that exists.
    pub(super) whole: bool,
}

impl Spot {
    pub(super) fn leaf(place: Place) -> Self {
        Self { place, kids: Kids::None }
    }

    /// Returns the position of the value at `path`. If the path does not exist, returns the position of its deepest
    /// existing parent.
    pub(super) fn reach(&self, path: &FieldPath) -> Reached<'_> {
        let mut reached = Reached { spot: self, entry: None, whole: true };
        for segment in path.segments() {
            let Some((spot, entry)) = reached.spot.step(segment) else {
                return Reached { whole: false, ..reached };
            };
            reached = Reached { spot, entry, whole: true };
        }
        reached
    }

    fn step(&self, segment: &Segment) -> Option<(&Spot, Option<&Entry>)> {
        match (&self.kids, segment) {
            (Kids::List(items), Segment::Index(index)) => Some((items.get(*index)?, None)),
            (Kids::Map(entries), Segment::Key(key)) => {
                let after = entries.partition_point(|entry| *entry.key <= **key);
                let entry = entries.get(after.checked_sub(1)?)?;
                (*entry.key == **key).then_some((&entry.spot, Some(entry)))
            }
            _ => None,
        }
    }

    /// Returns a copy of this tree of positions in which every position is `place`. It is used for a value that a YAML
    /// alias inserts: the value and all values nested in it get the position of the alias.
    pub(super) fn moved(&self, place: Place) -> Self {
        let kids = match &self.kids {
            Kids::None => Kids::None,
            Kids::List(items) => Kids::List(items.iter().map(|item| item.moved(place)).collect()),
            Kids::Map(entries) => Kids::Map(entries.iter().map(|entry| entry.moved(place)).collect()),
        };
        Self { place, kids }
    }

    /// Adds each duplicate key in this value to `found`, including keys in nested values. `at` is the path of this
    /// value.
    pub(super) fn duplicates(&self, at: &FieldPath, found: &mut Vec<Duplicate>) {
        match &self.kids {
            Kids::None => {}
            Kids::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    if !matches!(item.kids, Kids::None) {
                        item.duplicates(&at.index(index), found);
                    }
                }
            }
            Kids::Map(entries) => duplicate_keys(entries, at, found),
        }
    }
}

fn duplicate_keys(entries: &[Entry], at: &FieldPath, found: &mut Vec<Duplicate>) {
    for equal in entries.chunk_by(|a, b| a.key == b.key) {
        let own = || equal.iter().filter(|entry| !entry.merged);
        for (lost, kept) in own().zip(own().skip(1)) {
            found.push(Duplicate { path: at.key(&kept.key), lost: lost.key_place, kept: kept.key_place });
        }
        // Merged values are examined only where they take effect.
        let merged = equal.last().filter(|_| own().next().is_none());
        for entry in own().chain(merged).filter(|entry| !matches!(entry.spot.kids, Kids::None)) {
            entry.spot.duplicates(&at.key(&entry.key), found);
        }
    }
}

impl Entry {
    pub(super) fn moved(&self, place: Place) -> Self {
        Self { key: self.key.clone(), key_place: place, spot: self.spot.moved(place), merged: true }
    }
}
