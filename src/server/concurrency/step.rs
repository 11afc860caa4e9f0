//! Runs a decision in small steps. A step is one poll of the decision's future. Between two steps, the thread can yield
//! to the async runtime, which then reads new requests.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::task::yield_now;

thread_local! {
    /// Computing time of this thread since it last yielded to the runtime.
    static SINCE_YIELD: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Runs `work` step by step, and returns its output. Before each step, waits in FIFO order for one of `permits`. Holds
/// the permit during the step. Like [`ConcurrencyLimiter::run`](super::ConcurrencyLimiter::run), yields to the runtime
/// after `yield_after` of computing time. Never rejects the work.
pub(in crate::server) async fn stepwise<T>(
    permits: &Semaphore,
    yield_after: Duration,
    work: impl Future<Output = T>,
) -> T {
    let mut work = pin!(work);
    loop {
        // An error would mean a closed semaphore; this one is never closed.
        let permit = permits.acquire().await;
        yield_if_due(yield_after).await;
        let step = step(work.as_mut()).await;
        drop(permit);
        if let Poll::Ready(output) = step {
            return output;
        }
        woken().await;
    }
}

/// Yields to the runtime if this thread has computed for `yield_after`. The runtime then reads new requests, and queues
/// or rejects them.
pub(super) async fn yield_if_due(yield_after: Duration) {
    if SINCE_YIELD.get() >= yield_after {
        SINCE_YIELD.set(Duration::ZERO);
        yield_now().await;
    }
}

/// Polls `work` once. Adds the duration of this poll to the computing time of the thread since its last yield.
pub(super) async fn step<T>(mut work: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    let began = Instant::now();
    let step = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await;
    SINCE_YIELD.set(SINCE_YIELD.get().saturating_add(began.elapsed()));
    step
}

/// Waits until the current task is woken. Call this function after [`step`] has returned `Poll::Pending`. A spurious
/// wake-up is harmless, because it only leads to one more poll.
pub(super) async fn woken() {
    let mut polled = false;
    poll_fn(|_| if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}
