//! A bounded cache that evicts the least recently used entries.

use std::collections::HashMap;
use std::hash::Hash;
use std::mem;

/// Maximum size of one generation, in bytes. The cache has two.
const GENERATION_BYTES: usize = 64 << 20;

/// A cache with approximate LRU eviction in two generations.
///
/// Used entries move to the young generation. When it is full, the old generation is dropped and the young one becomes
/// the old one.
#[derive(Debug)]
pub(super) struct LruCache<K, V> {
    young: HashMap<K, (V, usize)>,
    old: HashMap<K, (V, usize)>,
    weight: usize,
    limit: usize,
}

impl<K, V> Default for LruCache<K, V> {
    fn default() -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), weight: 0, limit: GENERATION_BYTES }
    }
}

impl<K: Hash + Eq + Clone, V: Clone> LruCache<K, V> {
    pub(super) fn get(&mut self, key: &K) -> Option<V> {
        if let Some((value, _)) = self.young.get(key) {
            return Some(value.clone());
        }
        let (value, weight) = self.old.remove(key)?;
        self.insert(key.clone(), value.clone(), weight);
        Some(value)
    }

    pub(super) fn insert(&mut self, key: K, value: V, weight: usize) {
        self.weight += weight;
        if let Some((_, before)) = self.young.insert(key, (value, weight)) {
            self.weight = self.weight.saturating_sub(before);
        }
        if self.weight > self.limit {
            self.old = mem::take(&mut self.young);
            self.weight = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evicts_entries_that_were_not_used_recently() {
        let mut cache = LruCache { limit: 10, ..LruCache::default() };
        for number in 0..100 {
            cache.insert(number, number, 1);
            assert_eq!(cache.get(&0), Some(0));
            assert!(cache.young.len() + cache.old.len() <= 22);
        }
        assert_eq!(cache.get(&50), None);
        assert_eq!(cache.get(&99), Some(99));
    }
}
