//! A bounded cache of parsed objects.

use std::collections::HashMap;
use std::sync::Arc;

use super::Stored;
use super::records::Id;
use super::stored::Held;

/// Maximum memory for parsed objects, in bytes, as estimated by [`weight`]. A decision reads few objects, and most
/// decisions read the same objects.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// Maximum memory of a cached object, in bytes, as estimated by [`weight`]. A larger object is parsed for each decision
/// that reads it.
const MAX_OBJECT_BYTES: usize = MAX_BYTES / 2;
/// Estimated ratio of the memory of a parsed object to the size of its JSON text. Measured ratios are between 9 and 29.
const EXPANSION: usize = 20;
/// Estimated memory of a parsed object in addition to its JSON values, in bytes. It includes the typed view of the
/// object.
const OVERHEAD: usize = 1024;

/// An approximate LRU cache of parsed objects. It consists of a new and an old generation.
///
/// When the new generation reaches half of [`MAX_BYTES`], it becomes the old generation. The previous old generation is
/// dropped. If a look-up finds an object in the old generation, the object moves to the new generation.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    new: HashMap<Key, Arc<Stored>>,
    old: HashMap<Key, Arc<Stored>>,
    weight: usize,
}

/// The key of a cached object: the memory address of its kind, and the id of its stored record. The address identifies
/// the kind, because each kind is in memory only once.
type Key = (usize, Id);

fn key(held: &Held) -> Key {
    (std::ptr::from_ref(held.kind).addr(), held.id)
}

/// Estimates how much memory an object needs after its JSON text is parsed, in bytes.
fn weight(held: &Held) -> usize {
    let length = held.record().map_or(0, |record| record.text_length);
    length.saturating_mul(EXPANSION).saturating_add(OVERHEAD)
}

impl Parsed {
    /// Returns the parsed object of a record. Uses the cached object if there is one. Otherwise parses the object, and
    /// caches it unless it is too large.
    pub(super) fn get(&mut self, held: Held) -> Arc<Stored> {
        let (key, added) = (key(&held), weight(&held));
        // A slow reader may look up a record that was replaced meanwhile.
        if let Some(known) = self.new.get(&key).filter(|known| known.is_of(&held)) {
            return Arc::clone(known);
        }
        let known = self.old.remove(&key).filter(|known| known.is_of(&held));
        let stored = known.unwrap_or_else(|| Arc::new(Stored::held(held)));
        if added <= MAX_OBJECT_BYTES {
            if self.weight + added > MAX_BYTES / 2 {
                self.old = std::mem::take(&mut self.new);
                self.weight = 0;
            }
            self.weight += added;
            if let Some(replaced) = self.new.insert(key, Arc::clone(&stored)) {
                self.weight = self.weight.saturating_sub(replaced.as_held().map_or(0, weight));
            }
        }
        stored
    }

    /// Removes an object from the cache, because the catalog no longer stores it.
    pub(super) fn forget(&mut self, held: &Held) {
        let key = key(held);
        if let Some(known) = self.new.remove(&key) {
            self.weight = self.weight.saturating_sub(known.as_held().map_or(0, weight));
        }
        self.old.remove(&key);
    }

    /// Returns the number of cached objects.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.new.len() + self.old.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Compressed;
    use super::super::{Kind, Scope, Storage};
    use super::*;

    static THINGS: Kind = Kind {
        group: "example.org",
        version: "v1",
        kind: "Thing",
        plural: "things",
        scope: Scope::Namespaced,
        indexes: &[],
        storage: Storage::Whole,
    };

    fn held(name: &str, bytes: usize) -> Held {
        let text = format!(r#"{{"spec":"{}"}}"#, "x".repeat(bytes));
        let record = Compressed::text(&text, None).unwrap().record(0, name).into();
        let id = name.parse().unwrap_or(Id::MAX - name.len() as Id);
        Held { kind: &THINGS, namespace: "ns".into(), id, bytes: record, dictionary: None }
    }

    #[test]
    fn an_object_that_is_read_again_is_the_same_one() {
        let (mut parsed, thing) = (Parsed::default(), held("a", 10));
        let first = parsed.get(thing.clone());
        assert!(Arc::ptr_eq(&first, &parsed.get(thing.clone())));
        assert_eq!((first.name(), first.namespace(), first.value()["spec"].as_str()), ("a", "ns", Some("xxxxxxxxxx")));
        parsed.forget(&thing);
        assert_eq!((parsed.len(), parsed.weight), (0, 0));
        assert!(!Arc::ptr_eq(&first, &parsed.get(thing)));
    }

    #[test]
    fn a_late_reader_gets_what_it_found() {
        let (mut parsed, before, now) = (Parsed::default(), held("a", 10), held("a", 20));
        let length = |stored: &Stored| stored.value()["spec"].as_str().map(str::len);
        let first = parsed.get(now.clone());
        assert_eq!(length(&parsed.get(before)), Some(10));
        assert_eq!((length(&parsed.get(now.clone())), parsed.len()), (Some(20), 1));
        assert_eq!(first.value(), parsed.get(now.clone()).value());
        parsed.forget(&now);
        assert_eq!((parsed.len(), parsed.weight), (0, 0));
    }

    #[test]
    fn the_cache_is_bounded() {
        let mut parsed = Parsed::default();
        let hot = held("hot", 100);
        let first = parsed.get(hot.clone());
        let most = MAX_BYTES / (1_000 * EXPANSION);
        for number in 0..most * 4 {
            parsed.get(held(&number.to_string(), 1_000));
            assert!(Arc::ptr_eq(&first, &parsed.get(hot.clone())), "what is read all the time stays");
            assert!(parsed.len() <= most);
        }
        let (before, large) = (parsed.len(), held("large", MAX_OBJECT_BYTES / EXPANSION));
        parsed.get(large);
        assert_eq!(parsed.len(), before, "a large object is not kept");
    }
}
