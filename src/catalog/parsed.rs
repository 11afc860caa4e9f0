//! A bounded cache of parsed objects.

use std::collections::HashMap;
use std::sync::Arc;

use super::Stored;
use super::stored::Held;

/// The most memory for parsed objects, estimated by [`weight`]. Decisions read few objects, and mostly the same ones.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// An object that takes more is parsed for each decision that reads it.
const MAX_OBJECT_BYTES: usize = MAX_BYTES / 2;
/// Ratio of parsed to JSON size: measured from 9 to 29.
const EXPANSION: usize = 20;
/// Additional size of a parsed object, including its typed view.
const OVERHEAD: usize = 1024;

/// An approximate LRU cache of two generations. When the new generation has half of the size, it becomes the old one, and the
/// old one is dropped; reading an old object moves it to the new generation.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    new: HashMap<usize, Arc<Stored>>,
    old: HashMap<usize, Arc<Stored>>,
    weight: usize,
}

/// Estimates what an object takes once it is parsed.
fn weight(held: &Held) -> usize {
    held.record.text_length().saturating_mul(EXPANSION).saturating_add(OVERHEAD)
}

impl Parsed {
    /// Returns the cached object, or adds it.
    pub(super) fn get(&mut self, held: Held) -> Arc<Stored> {
        let (key, weight) = (held.record.address(), weight(&held));
        if let Some(known) = self.new.get(&key) {
            return Arc::clone(known);
        }
        let stored = self.old.remove(&key).unwrap_or_else(|| Arc::new(Stored::held(held)));
        if weight <= MAX_OBJECT_BYTES {
            if self.weight + weight > MAX_BYTES / 2 {
                self.old = std::mem::take(&mut self.new);
                self.weight = 0;
            }
            self.weight += weight;
            // It holds its record, so nothing else gets that address.
            self.new.insert(key, Arc::clone(&stored));
        }
        stored
    }

    /// Removes an object that is no longer stored.
    pub(super) fn forget(&mut self, held: &Held) {
        let key = held.record.address();
        if self.new.remove(&key).is_some() {
            self.weight = self.weight.saturating_sub(weight(held));
        }
        self.old.remove(&key);
    }

    /// Returns how many objects are cached.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.new.len() + self.old.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts::{Part, Projection};
    use super::super::record::Record;
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
        let text = format!(r#"{{"metadata":{{"name":"{name}"}},"spec":"{}"}}"#, "x".repeat(bytes));
        let projection = Projection::of(&THINGS, &Part::of(THINGS.storage.parts()), &text).unwrap();
        let record = Record::of(&projection, None).unwrap();
        Held { kind: &THINGS, namespace: "ns".into(), record, dictionary: None }
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
