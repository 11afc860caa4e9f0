//! Caches of limited size. They cover three uses: values with LRU eviction, recent failures (negative caching), and
//! running calculations that concurrent callers share (single flight).

mod failures;
mod lru;
mod single_flight;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use failures::RecentFailures;
pub use lru::Lru;
pub use single_flight::{Full, SharedResult, SingleFlight};

/// Locks a mutex, even if a thread panicked while it held the lock. The cache is still consistent after such a panic,
/// because no operation can panic in the middle of a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
