//! Returns memory that was freed to the operating system.
//!
//! mimalloc keeps freed memory for a while, in case it is needed again. It returns the memory of a thread when that thread
//! allocates or ends later, and the memory of threads that have ended when any thread ends later. A server that waits for
//! requests after loading its catalog does neither, so loading runs on a thread that ends.

use std::hint::black_box;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, Builder, JoinHandle, available_parallelism, sleep};
use std::time::Duration;

/// Longer than the time for which mimalloc keeps freed memory: 10 ms for pages, 100 ms for segments.
const PURGE_DELAY: Duration = Duration::from_millis(150);

/// Runs `work` on a thread of its own. The memory that it and its threads freed returns to the operating system soon after
/// its end.
pub(super) fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let done = thread::scope(|scope| scope.spawn(work).join());
    // One for `work`, and one for each of its threads.
    let (holders, are_ready) = hold(available_parallelism().map_or(1, NonZero::get) + 1);
    are_ready.into_iter().for_each(drop);
    start(move || release(holders));
    done.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Starts threads that take over the memory of threads that have ended. A long-lived thread that starts now would
/// otherwise take it over, and never return it. The receiver is closed when all have taken it over.
fn hold(count: usize) -> (Vec<JoinHandle<()>>, Receiver<()>) {
    let (sender, are_ready) = channel();
    let holders = (0..count).filter_map(|_| {
        let ready = sender.clone();
        start(move || {
            // The first allocation of a thread takes a segment.
            drop(black_box(Box::new(0_u64)));
            drop(ready);
            sleep(PURGE_DELAY);
        })
    });
    (holders.collect(), are_ready)
}

/// Waits until the holders end and mimalloc may return their memory; then ends a thread, which makes it do so.
fn release(holders: Vec<JoinHandle<()>>) {
    for holder in holders {
        let _ = holder.join();
    }
    sleep(PURGE_DELAY);
    let _ = start(|| drop(black_box(Box::new(0_u64)))).map(JoinHandle::join);
}

/// Starts a thread. Without it, memory returns later.
fn start(work: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    Builder::new().spawn(work).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_runs_once_and_returns_its_result() {
        let (mut calls, text) = (0, "a".to_owned());
        let length = on_own_thread(|| {
            calls += 1;
            text.len()
        });
        assert_eq!((calls, length), (1, 1));
    }

    #[test]
    fn holders_end() {
        let (holders, are_ready) = hold(3);
        assert_eq!((holders.len(), are_ready.recv().is_err()), (3, true));
        release(holders);
    }
}
