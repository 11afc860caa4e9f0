//! What is kept for the next one, as long as there is room: what was used last stays longest.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Values by key, bounded in number and in weight.
pub(super) struct Kept<K, V> {
    values: HashMap<K, Slot<V>>,
    /// Keys by when they were used last.
    used: BTreeMap<u64, K>,
    now: u64,
    weight: u64,
    heaviest: u64,
    most: usize,
}

struct Slot<V> {
    value: V,
    weight: u64,
    used: u64,
}

impl<K: Hash + Eq + Clone, V: Clone> Kept<K, V> {
    /// Keeps values of at most this weight together, and at most so many.
    pub(super) fn new(heaviest: u64, most: usize) -> Self {
        Self { values: HashMap::new(), used: BTreeMap::new(), now: 0, weight: 0, heaviest, most }
    }

    /// The value of a key, which counts as a use.
    pub(super) fn find(&mut self, key: &K) -> Option<V> {
        let slot = self.values.get_mut(key)?;
        let key = self.used.remove(&slot.used)?;
        self.now += 1;
        slot.used = self.now;
        self.used.insert(self.now, key);
        Some(slot.value.clone())
    }

    /// Keeps a value, in place of those used longest ago. One that is too heavy by itself is not kept.
    pub(super) fn keep(&mut self, key: K, value: V, weight: usize) {
        let weight = weight as u64;
        self.forget(&key);
        if weight > self.heaviest {
            return;
        }
        self.now += 1;
        self.weight += weight;
        self.used.insert(self.now, key.clone());
        self.values.insert(key, Slot { value, weight, used: self.now });
        while self.weight > self.heaviest || self.values.len() > self.most {
            let Some((_, oldest)) = self.used.first_key_value() else { return };
            let oldest = oldest.clone();
            self.forget(&oldest);
        }
    }

    /// The weight of all values.
    pub(super) fn weight(&self) -> u64 {
        self.weight
    }

    fn forget(&mut self, key: &K) {
        if let Some(slot) = self.values.remove(key) {
            self.weight -= slot.weight;
            self.used.remove(&slot.used);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_was_used_last_stays() {
        let mut kept = Kept::new(10, 3);
        for key in ["a", "b", "c"] {
            kept.keep(key, key, 3);
        }
        assert_eq!(kept.find(&"a"), Some("a"));
        kept.keep("d", "d", 3);
        assert_eq!((kept.find(&"b"), kept.find(&"a")), (None, Some("a")));
        kept.keep("heavy", "heavy", 11);
        assert_eq!((kept.find(&"heavy"), kept.find(&"d")), (None, Some("d")));
    }

    proptest! {
        #[test]
        fn the_bounds_hold(steps in proptest::collection::vec((0_u8..20, 0_usize..40, any::<bool>()), 0..200)) {
            let mut kept = Kept::new(50, 5);
            for (key, weight, keeps) in steps {
                if keeps {
                    kept.keep(key, weight, weight);
                } else {
                    let _ = kept.find(&key);
                }
                let sum: u64 = kept.values.values().map(|slot| slot.weight).sum();
                prop_assert_eq!(sum, kept.weight());
                prop_assert!(sum <= 50 && kept.values.len() <= 5 && kept.values.len() == kept.used.len());
            }
        }
    }
}
