//! Single flight: concurrent callers with the same key share one computation.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use tokio::sync::oneshot;

use super::lock;

/// The result of a shared computation, for any number of callers. `None` if the computation panicked.
pub type SharedResult<T> = Shared<BoxFuture<'static, Option<T>>>;

/// The error of a computation that is not started, because too many are in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many computations are in flight")]
pub struct Full;

/// Computations in flight, by key. Each runs on its own task, so it completes even if no caller waits for it any more.
pub struct SingleFlight<K, T> {
    in_flight: InFlight<K, T>,
    max: usize,
}

type InFlight<K, T> = Arc<Mutex<HashMap<K, SharedResult<T>>>>;

/// A drop guard that removes a computation from the map of computations in flight, even after a panic.
struct Removal<K: Hash + Eq, T>(InFlight<K, T>, K);

impl<K: Hash + Eq, T> Drop for Removal<K, T> {
    fn drop(&mut self) {
        lock(&self.0).remove(&self.1);
    }
}

impl<K, T> SingleFlight<K, T>
where
    K: Hash + Eq + Clone + Send + 'static,
    T: Clone + Send + Sync + 'static,
{
    /// Creates an instance that allows at most `max` computations in flight.
    pub fn new(max: usize) -> Self {
        Self { in_flight: Arc::default(), max }
    }

    /// Returns the computation in flight for a key. If there is none, calls `compute`, and runs the returned future on
    /// the current Tokio runtime.
    ///
    /// A computation that stores its result in a cache must do so before it returns. Afterwards, the next caller starts
    /// a new computation unless it finds the result in the cache.
    ///
    /// # Errors
    /// [`Full`], if too many other computations are in flight.
    pub fn share<F>(&self, key: K, compute: impl FnOnce() -> F) -> Result<SharedResult<T>, Full>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let result = receiver.map(Result::ok).boxed().shared();
        {
            let mut in_flight = lock(&self.in_flight);
            if let Some(result) = in_flight.get(&key) {
                return Ok(result.clone());
            }
            if in_flight.len() >= self.max {
                return Err(Full);
            }
            in_flight.insert(key.clone(), result.clone());
        }
        let (removal, computation) = (Removal(self.in_flight.clone(), key), compute());
        tokio::spawn(async move {
            let value = computation.await;
            drop(removal);
            // Without a receiver, nobody waits for the result.
            let _ = sender.send(value);
        });
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn concurrent_callers_share_one_computation() {
        let (flights, started) = (SingleFlight::new(10), Arc::new(AtomicUsize::new(0)));
        let release = Arc::new(Semaphore::new(0));
        let compute = || {
            let (started, release) = (started.clone(), release.clone());
            async move {
                started.fetch_add(1, Ordering::SeqCst);
                let _permit = release.acquire().await;
                7
            }
        };
        let results: Vec<_> = (0..5).map(|_| flights.share("key", compute).unwrap()).collect();
        release.add_permits(1);
        assert_eq!(futures::future::join_all(results).await, vec![Some(7); 5]);
        assert_eq!(started.load(Ordering::SeqCst), 1);
        assert_eq!(flights.share("key", || async { 8 }).unwrap().await, Some(8), "completed computations are removed");
    }

    #[tokio::test]
    async fn bounds_the_computations_in_flight() {
        let flights = SingleFlight::<_, ()>::new(1);
        let first = flights.share("a", std::future::pending).unwrap();
        assert_eq!(flights.share("b", || async {}).err(), Some(Full));
        assert!(flights.share("a", || async {}).unwrap().ptr_eq(&first));
    }

    #[tokio::test]
    async fn completes_without_callers_and_survives_panics() {
        let (flights, done) = (SingleFlight::new(1), Arc::new(Semaphore::new(0)));
        let release = done.clone();
        drop(flights.share("a", || async move { release.add_permits(1) }));
        let _permit = done.acquire().await;
        while flights.share("b", || async {}).is_err() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_panic_has_no_result_and_is_removed() {
        let flights = SingleFlight::new(1);
        let result = flights.share("a", async || -> u8 { panic!("on purpose") }).unwrap().await;
        assert_eq!(result, None);
        assert_eq!(flights.share("a", async || 1).unwrap().await, Some(1));
    }
}
