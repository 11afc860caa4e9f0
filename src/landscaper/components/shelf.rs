//! A map within bounds that forgets what was not used for longest.

use std::collections::HashMap;
use std::hash::Hash;
use std::mem;

/// What one half may weigh, in bytes: the whole is twice this at most.
const HALF: usize = 64 << 20;

/// Two halves: what is used moves into the young one, and when that is full the old one is forgotten.
#[derive(Debug)]
pub(super) struct Shelf<K, V> {
    young: HashMap<K, (V, usize)>,
    old: HashMap<K, (V, usize)>,
    weight: usize,
    half: usize,
}

impl<K, V> Default for Shelf<K, V> {
    fn default() -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), weight: 0, half: HALF }
    }
}

impl<K: Hash + Eq + Clone, V: Clone> Shelf<K, V> {
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
        if self.weight > self.half {
            self.old = mem::take(&mut self.young);
            self.weight = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_is_forgotten() {
        let mut shelf = Shelf { half: 10, ..Shelf::default() };
        for number in 0..100 {
            shelf.insert(number, number, 1);
            assert_eq!(shelf.get(&0), Some(0));
            assert!(shelf.young.len() + shelf.old.len() <= 22);
        }
        assert_eq!(shelf.get(&50), None);
        assert_eq!(shelf.get(&99), Some(99));
    }
}
