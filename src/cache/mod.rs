//! Bounded caches: LRU eviction, single flight and recent failures.

mod failures;
mod lru;
mod single_flight;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use failures::RecentFailures;
pub use lru::Lru;
pub use single_flight::{Full, SharedResult, SingleFlight};

/// Locks a mutex. Every change under these locks is one call, so a panic leaves no half of one.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
