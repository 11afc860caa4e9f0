//! Runs work that uses much memory, and then returns the freed memory to the operating system.
//!
//! The allocator mimalloc keeps freed memory for later use. It returns the memory of a running thread only when this
//! thread allocates again or ends. The threads of an idle server do not allocate, and they do not end. So large
//! manifests are loaded on a separate thread. After this thread has ended, a few short threads start and end. This
//! makes mimalloc return the memory that the loading thread freed.

use std::hint::black_box;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, Builder, JoinHandle, available_parallelism, sleep};
use std::time::Duration;

/// Time to wait before freed memory is returned to the operating system. It is longer than the time for which mimalloc
/// keeps freed memory. mimalloc keeps pages for 10 ms and segments for 100 ms.
const PURGE_DELAY: Duration = Duration::from_millis(150);

/// Runs `work` on a separate thread, and returns its result. Soon after this thread ends, the memory that `work` freed
/// is returned to the operating system. This includes the memory that was freed on threads that `work` started.
pub(super) fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let done = thread::scope(|scope| scope.spawn(work).join());
    // One thread for the thread of `work`, and one for each thread that `work` starts.
    let (holders, are_ready) = hold(available_parallelism().map_or(1, NonZero::get) + 1);
    are_ready.into_iter().for_each(drop);
    start(move || release(holders));
    done.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Starts `count` threads that end after [`PURGE_DELAY`]. The allocator mimalloc gives the memory of ended threads to
/// the next threads that start, so these threads take over that memory. If long-lived threads took it over, it would
/// never be returned to the operating system.
///
/// Returns the handles of the threads, and a receiver. The receiver is closed when every thread has taken over memory.
fn hold(count: usize) -> (Vec<JoinHandle<()>>, Receiver<()>) {
    let (sender, are_ready) = channel();
    let holders = (0..count).filter_map(|_| {
        let ready = sender.clone();
        start(move || {
            // A thread takes over a segment of memory at its first allocation.
            drop(black_box(Box::new(0_u64)));
            drop(ready);
            sleep(PURGE_DELAY);
        })
    });
    (holders.collect(), are_ready)
}

/// Makes mimalloc return the memory of the threads in `holders` to the operating system. First waits until these
/// threads have ended, and until mimalloc no longer keeps their memory for reuse. Then starts another thread, because
/// mimalloc returns the memory of ended threads only when a thread ends.
fn release(holders: Vec<JoinHandle<()>>) {
    for holder in holders {
        let _ = holder.join();
    }
    sleep(PURGE_DELAY);
    let _ = start(|| drop(black_box(Box::new(0_u64)))).map(JoinHandle::join);
}

/// Starts a thread that runs `work`. Returns the handle of the thread; `None` if the thread cannot be started.
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
