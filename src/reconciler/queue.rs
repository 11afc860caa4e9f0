//! A work queue of objects to reconcile. It deduplicates objects, gives each object to only one worker at a time, and
//! delays retries after failures.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::Next;
use crate::catalog::Reference;

/// Maximum number of objects in the queue. This is the number of objects of one kind in a large cluster. Each object
/// costs about 200 bytes.
pub const CAPACITY: usize = 100_000;
/// Delay after the first failure. It is short because most failures are write conflicts, and a new read resolves a
/// conflict.
const FIRST_WAIT: Duration = Duration::from_millis(50);
/// Maximum delay after failures. With this delay, an object that fails every time is reconciled about once a minute.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// A work queue of objects, shared by the workers of a controller.
pub struct Queue {
    state: Mutex<State>,
    wake: Notify,
    caught_up: Notify,
    capacity: usize,
}

#[derive(Default)]
struct State {
    entries: HashMap<Reference, Entry>,
    ready: VecDeque<Reference>,
    waiting: BTreeMap<(Instant, u64), Reference>,
    count: u64,
    is_open: bool,
    /// Whether the queue dropped an object because it was full. When at most half of the capacity is in use again, the
    /// queue resets this field and notifies `caught_up`. The controller then adds all objects to the queue again.
    was_full: bool,
}

struct Entry {
    place: Place,
    failures: u32,
}

enum Place {
    Ready,
    Waiting(Instant, u64),
    Running { again: bool },
}

impl Default for Queue {
    fn default() -> Self {
        Self::with_capacity(CAPACITY)
    }
}

impl Queue {
    /// Creates an empty queue for at most `capacity` objects. The queue is closed: it ignores objects until `open` is
    /// called.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { state: Mutex::default(), wake: Notify::new(), caught_up: Notify::new(), capacity }
    }

    /// Opens the queue, so that it accepts objects.
    pub fn open(&self) {
        self.state().is_open = true;
    }

    /// Empties and closes the queue. After that, [`next`](Self::next) returns `None`.
    pub fn close(&self) {
        *self.state() = State::default();
        self.wake.notify_waiters();
        self.wake.notify_one();
    }

    /// Returns whether the queue accepts objects. This is the case after [`open`](Self::open), and until
    /// [`close`](Self::close).
    pub fn is_open(&self) -> bool {
        self.state().is_open
    }

    /// Returns the number of objects in the queue.
    pub fn len(&self) -> usize {
        self.state().entries.len()
    }

    /// Returns whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Queues an object. If a worker is reconciling the object, it is reconciled again afterwards. If the object waits
    /// for a retry after a failure, the time of the retry does not change. The object is dropped if the queue is closed
    /// or full.
    pub fn push(&self, object: Reference) {
        let mut state = self.state();
        let state = &mut *state;
        if !state.is_open {
            return;
        }
        let is_full = state.entries.len() >= self.capacity;
        match state.entries.get_mut(&object) {
            Some(entry) => match &mut entry.place {
                Place::Ready => return,
                Place::Running { again } => {
                    *again = true;
                    return;
                }
                // A failed object keeps its delay, even if it changes all the time.
                Place::Waiting(..) if entry.failures > 0 => return,
                Place::Waiting(at, number) => {
                    state.waiting.remove(&(*at, *number));
                    entry.place = Place::Ready;
                }
            },
            None if is_full => {
                state.was_full = true;
                return;
            }
            None => {
                state.entries.insert(object.clone(), Entry { place: Place::Ready, failures: 0 });
            }
        }
        state.ready.push_back(object);
        self.wake.notify_one();
    }

    /// Waits for the next object to reconcile, and returns it. No other caller gets this object until
    /// [`done`](Self::done). `None` if the queue is closed.
    pub async fn next(&self) -> Option<Reference> {
        loop {
            let due = {
                let mut state = self.state();
                if !state.is_open {
                    // Wakes the next waiting worker.
                    self.wake.notify_one();
                    return None;
                }
                if let Some(object) = state.take() {
                    if !state.ready.is_empty() {
                        self.wake.notify_one();
                    }
                    return Some(object);
                }
                state.waiting.keys().next().map(|(at, _)| *at)
            };
            match due {
                // Both are cancellation safe: nothing is taken before the next iteration.
                Some(at) => tokio::select! {
                    () = sleep_until(at) => {}
                    () = self.wake.notified() => {}
                },
                None => self.wake.notified().await,
            }
        }
    }

    /// Ends the reconciliation of an object. `next` says when the object is reconciled again. `None` means that the
    /// reconciliation failed: the object is reconciled again after a backoff, which grows with the number of failures.
    pub fn done(&self, object: &Reference, next: Option<Next>) {
        let mut state = self.state();
        let state = &mut *state;
        let Some(entry) = state.entries.get_mut(object) else { return };
        let again = matches!(entry.place, Place::Running { again: true });
        let wait = match next {
            None => {
                entry.failures = entry.failures.saturating_add(1);
                backoff(entry.failures)
            }
            Some(_) if again => Duration::ZERO,
            Some(Next::Again(wait)) => wait,
            Some(Next::Done) => {
                state.entries.remove(object);
                if state.was_full && state.entries.len() <= self.capacity / 2 {
                    state.was_full = false;
                    self.caught_up.notify_one();
                }
                return;
            }
        };
        if next.is_some() {
            entry.failures = 0;
        }
        state.count += 1;
        let place = (Instant::now() + wait, state.count);
        entry.place = Place::Waiting(place.0, place.1);
        state.waiting.insert(place, object.clone());
        self.wake.notify_one();
    }

    /// Waits until a queue that was full has room again. It has room when at most half of its capacity is in use.
    /// Callers then queue again the objects that the full queue dropped.
    pub async fn caught_up(&self) {
        self.caught_up.notified().await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No call panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self) -> Option<Reference> {
        let now = Instant::now();
        while let Some(entry) = self.waiting.first_entry().filter(|entry| entry.key().0 <= now) {
            let object = entry.remove();
            if let Some(entry) = self.entries.get_mut(&object) {
                entry.place = Place::Ready;
            }
            self.ready.push_back(object);
        }
        let object = self.ready.pop_front()?;
        self.entries.get_mut(&object)?.place = Place::Running { again: false };
        Some(object)
    }
}

fn backoff(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    MAX_WAIT.min(FIRST_WAIT * 2_u32.pow(doublings))
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;
    use crate::catalog::NAMESPACES;

    fn key(name: &str) -> Reference {
        Reference::new(&NAMESPACES, "", name)
    }

    fn queue(capacity: usize) -> Queue {
        let queue = Queue::with_capacity(capacity);
        queue.open();
        queue
    }

    #[tokio::test]
    async fn reconciles_an_object_once_at_a_time() {
        let queue = queue(10);
        queue.push(key("a"));
        queue.push(key("a"));
        assert_eq!(queue.next().await, Some(key("a")));
        queue.push(key("a"));
        assert_eq!(queue.next().now_or_never(), None);
        queue.done(&key("a"), Some(Next::Done));
        assert_eq!(queue.next().await, Some(key("a")));
        queue.done(&key("a"), Some(Next::Done));
        assert!(queue.is_empty());
    }

    #[tokio::test]
    async fn failures_back_off_and_a_success_resets_the_delay() {
        let queue = queue(10);
        queue.push(key("a"));
        let (mut failures, mut is_waiting) = (Vec::new(), Vec::new());
        for outcome in [None, None, None, Some(Next::Again(Duration::ZERO)), None, None] {
            assert_eq!(queue.next().await, Some(key("a")));
            queue.done(&key("a"), outcome);
            queue.push(key("a"));
            let state = queue.state();
            let entry = &state.entries[&key("a")];
            failures.push(entry.failures);
            is_waiting.push(matches!(entry.place, Place::Waiting(..)));
        }
        assert_eq!(failures, [1, 2, 3, 0, 1, 2], "a success forgets");
        assert_eq!(is_waiting, [true, true, true, false, true, true]);
        assert_eq!([1, 2, 3, 4].map(backoff), [50, 100, 200, 400].map(Duration::from_millis));
        assert_eq!(backoff(u32::MAX), MAX_WAIT);
    }

    #[tokio::test]
    async fn catches_up_after_the_queue_was_full() {
        let queue = queue(4);
        for name in ["a", "b", "c", "d", "e"] {
            queue.push(key(name));
        }
        assert_eq!(queue.len(), 4);
        for _ in 0..2 {
            assert!(queue.caught_up().now_or_never().is_none());
            let object = queue.next().await.unwrap();
            queue.done(&object, Some(Next::Done));
        }
        assert!(queue.caught_up().now_or_never().is_some());
    }

    #[tokio::test]
    async fn closing_wakes_all_waiting_workers() {
        let queue = queue(2);
        let waiting = futures::future::join_all((0..4).map(|_| queue.next()));
        let close = async { queue.close() };
        let (ended, ()) = futures::join!(waiting, close);
        assert!(ended.iter().all(Option::is_none));
        queue.push(key("a"));
        assert!(queue.is_empty());
    }
}
