//! A cache of recent failures. Callers return the recorded error for a while, instead of trying again.

use std::hash::Hash;
use std::time::{Duration, Instant};

use super::Lru;

/// A cache of error messages by key, with a time to live and a maximum number of entries.
pub struct RecentFailures<K> {
    messages: Lru<K, (Instant, String)>,
    time_to_live: Duration,
}

impl<K: Hash + Eq> RecentFailures<K> {
    /// Creates an empty cache. An entry expires after `time_to_live`. If there are more than `max_entries` entries, the
    /// least recently used entries are evicted.
    pub fn new(time_to_live: Duration, max_entries: usize) -> Self {
        Self { messages: Lru::new(u64::MAX, max_entries), time_to_live }
    }

    /// Returns the recorded message of a key; `None` if there is none, or if it has expired.
    pub fn get(&self, key: &K) -> Option<String> {
        let (since, message) = self.messages.get(key)?;
        (since.elapsed() < self.time_to_live).then_some(message)
    }

    /// Records the message of a failure for a key, and starts its time to live.
    pub fn insert(&self, key: K, message: String) {
        self.messages.insert(key, (Instant::now(), message), 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_expire() {
        let get_after = |time_to_live| {
            let failures = RecentFailures::new(time_to_live, 10);
            failures.insert("host", "timeout".to_owned());
            failures.get(&"host")
        };
        assert_eq!(get_after(Duration::from_secs(3600)).as_deref(), Some("timeout"));
        assert_eq!(get_after(Duration::ZERO), None);
    }
}
