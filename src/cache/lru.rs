//! A cache with a maximum weight and a maximum number of entries. It evicts the least recently used entries.

use std::fmt;
use std::hash::Hash;
use std::sync::Mutex;

use ::lru::LruCache;

use super::lock;

/// A cache with LRU eviction. The total weight never exceeds the maximum weight.
///
/// The `lru` crate records the order of use. This type enforces the maximum weight and the maximum number of entries.
pub struct Lru<K, V>(Mutex<Entries<K, V>>);

struct Entries<K, V> {
    values: LruCache<K, (V, u64)>,
    weight: u64,
    max_weight: u64,
    max_entries: usize,
}

impl<K: Hash + Eq, V> fmt::Debug for Lru<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = lock(&self.0);
        f.debug_struct("Lru").field("count", &entries.values.len()).field("weight", &entries.weight).finish()
    }
}

impl<K: Hash + Eq, V: Clone> Lru<K, V> {
    /// Creates an empty cache with a maximum total weight and a maximum number of entries. Callers choose the unit of
    /// the weights, which is usually bytes.
    pub fn new(max_weight: u64, max_entries: usize) -> Self {
        Self(Mutex::new(Entries { values: LruCache::unbounded(), weight: 0, max_weight, max_entries }))
    }

    /// Returns the value of a key; `None` if it is not cached. The entry of this key becomes the most recently used
    /// entry.
    pub fn get(&self, key: &K) -> Option<V> {
        lock(&self.0).values.get(key).map(|(value, _)| value.clone())
    }

    /// Inserts or replaces a value. Evicts other values until the cache is within its limits. If the weight of the
    /// value alone exceeds the maximum weight, the value is not cached, and an existing value of the key is removed.
    pub fn insert(&self, key: K, value: V, weight: usize) {
        lock(&self.0).insert(key, value, u64::try_from(weight).unwrap_or(u64::MAX));
    }

    /// Removes the value of a key, if it is cached.
    pub fn remove(&self, key: &K) {
        lock(&self.0).remove(key);
    }

    /// Returns the number of cached values.
    pub fn count(&self) -> usize {
        lock(&self.0).values.len()
    }

    /// Returns the total weight of the cached values.
    pub fn weight(&self) -> u64 {
        lock(&self.0).weight
    }
}

impl<K: Hash + Eq, V> Entries<K, V> {
    fn remove(&mut self, key: &K) {
        if let Some((_, weight)) = self.values.pop(key) {
            self.weight -= weight;
        }
    }

    fn insert(&mut self, key: K, value: V, weight: u64) {
        self.remove(&key);
        if weight > self.max_weight {
            return;
        }
        self.values.put(key, (value, weight));
        self.weight += weight;
        while self.weight > self.max_weight || self.values.len() > self.max_entries {
            let Some((_, (_, evicted))) = self.values.pop_lru() else { return };
            self.weight -= evicted;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn evicts_the_least_recently_used_entries() {
        let cache = Lru::new(10, 3);
        for key in ["a", "b", "c"] {
            cache.insert(key, key, 3);
        }
        assert_eq!(cache.get(&"a"), Some("a"));
        cache.insert("d", "d", 3);
        assert_eq!((cache.get(&"b"), cache.get(&"a")), (None, Some("a")));
        cache.insert("heavy", "heavy", 11);
        assert_eq!((cache.get(&"heavy"), cache.get(&"d")), (None, Some("d")));
    }

    proptest! {
        #[test]
        fn never_exceeds_its_limits(steps in proptest::collection::vec((0_u8..20, 0_usize..40, any::<bool>()), 0..200)) {
            let cache = Lru::new(50, 5);
            for (key, weight, inserts) in steps {
                if inserts {
                    cache.insert(key, weight, weight);
                } else {
                    let _ = cache.get(&key);
                }
                let entries = lock(&cache.0);
                let sum: u64 = entries.values.iter().map(|(_, (_, weight))| weight).sum();
                prop_assert_eq!(sum, entries.weight);
                prop_assert!(sum <= 50 && entries.values.len() <= 5);
            }
        }
    }
}
