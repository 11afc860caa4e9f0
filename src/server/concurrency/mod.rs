//! Limits how many decisions are computed at the same time. If more requests arrive than can be served, rejects some of
//! them (load shedding).
//!
//! A decision, the answer to an admission request, is mostly CPU work. Suppose that a server thread computed every
//! decision as soon as its request arrived. Then this thread would not read later requests from their sockets. These
//! requests would wait in kernel buffers, where the server can neither count nor reject them.
//!
//! Therefore a decision needs a permit from a [`ConcurrencyLimiter`] before it is computed. A thread that has computed
//! for some time yields to the async runtime, which then reads new requests. A request without a permit waits in a
//! bounded queue. If the request does not get a permit before its deadline, it is rejected with HTTP 429.
//!
//! The queue is FIFO (first in, first out). It combines two known techniques:
//!
//! * **A token bucket, which distinguishes bursts from overload.** The bucket contains credit. Idle time adds credit,
//!   and busy time uses it up. Overload begins when no credit is left and the queue is long. A queue is long if it has
//!   more requests than the API servers have open connections. Overload ends when the credit is full again. Without
//!   overload, a request waits for at most [`QueuePolicy::deadline`].
//! * **A short deadline and a short queue during overload, as in CoDel.** During overload, a request waits for at most
//!   [`QueuePolicy::overload_deadline`]. The queue holds only as many requests as can be served within that time. If
//!   it is full, a new request evicts the oldest one. So the served requests have waited only briefly.
//!
//! A decision releases its permit while it waits for I/O, such as a response of the API server. It needs a permit again
//! to continue, and gets it before all requests whose decision has not started.

mod credit;
mod policy;
mod queue;
mod step;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::time::timeout;

use credit::IdleCredit;
pub(super) use policy::QueuePolicy;
use queue::Queue;
pub(super) use step::stepwise;
use step::{step, woken, yield_if_due};

/// A concurrency limiter with a bounded FIFO queue that sheds load under overload.
#[derive(Debug)]
pub(super) struct ConcurrencyLimiter {
    queue: Mutex<Queue>,
    permits: usize,
    /// Maximum number of requests in the queue that wait for a permit to start. Requests that have started, and wait
    /// for a permit to continue, do not count.
    capacity: usize,
    policy: QueuePolicy,
    /// Elapsed time that a thread may spend on computing decisions before it yields to the async runtime.
    yield_after: Duration,
}

/// A permit that a request holds while its decision is computed. When the permit is dropped, it passes to the next
/// request in the queue.
#[derive(Debug)]
struct Permit {
    limiter: Arc<ConcurrencyLimiter>,
    since: Instant,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let now = Instant::now();
        if let Some(next) = self.limiter.release(now, now.saturating_duration_since(self.since)) {
            // If the receiver is gone, `send` returns the permit in its error, which drops it and so passes it to the
            // next request.
            let _ = next.send(Self { limiter: Arc::clone(&self.limiter), since: now });
        }
    }
}

impl ConcurrencyLimiter {
    /// Creates a limiter with `permits` permits, at least one, and a queue of at most `capacity` requests. A thread
    /// that has computed for `yield_after` yields to the async runtime, so that other tasks can run.
    pub(super) fn new(permits: usize, capacity: usize, policy: QueuePolicy, yield_after: Duration) -> Arc<Self> {
        let credit = IdleCredit::full(policy, Instant::now());
        let permits = permits.max(1);
        let (started, waiting) = (VecDeque::new(), VecDeque::new());
        let queue = Queue { free: permits, mean_hold: Duration::ZERO, credit, started, waiting };
        Arc::new(Self { queue: Mutex::new(queue), permits, capacity, policy, yield_after })
    }

    /// Runs `work`. Holds a permit while `work` is polled, and none while it waits, for example for I/O. Returns `None`
    /// if the request is rejected before the work starts.
    pub(super) async fn run<T>(self: &Arc<Self>, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        let mut permit = self.first_permit().await?;
        loop {
            yield_if_due(self.yield_after).await;
            let step = step(work.as_mut()).await;
            drop(permit);
            if let Poll::Ready(output) = step {
                return Some(output);
            }
            woken().await;
            permit = self.next_permit().await;
        }
    }

    /// Returns the length of the queue, which is the number of requests whose decision has not started. Cancelled
    /// requests do not count.
    pub(super) fn waiting(&self) -> usize {
        self.queue().waiting.iter().filter(|waiting| !waiting.permit.is_closed()).count()
    }

    async fn first_permit(self: &Arc<Self>) -> Option<Permit> {
        let (receiver, deadline) = {
            let mut queue = self.queue();
            if let Some(permit) = self.take_free(&mut queue) {
                return Some(permit);
            }
            let now = Instant::now();
            let (deadline, capacity) = if queue.is_overload(now, self.policy) {
                let deadline = self.policy.overload_deadline;
                (deadline, self.capacity.min(queue.served_within(deadline, self.permits)))
            } else {
                (self.policy.deadline, self.capacity)
            };
            (queue.enqueue(now, capacity), deadline)
        };
        timeout(deadline, receiver).await.ok()?.ok()
    }

    async fn next_permit(self: &Arc<Self>) -> Permit {
        loop {
            let receiver = {
                let mut queue = self.queue();
                if let Some(permit) = self.take_free(&mut queue) {
                    return permit;
                }
                let (sender, receiver) = oneshot::channel();
                queue.started.push_back(sender);
                receiver
            };
            // Senders are never dropped unused; if one were, queueing again is correct.
            if let Ok(permit) = receiver.await {
                return permit;
            }
        }
    }

    fn take_free(self: &Arc<Self>, queue: &mut Queue) -> Option<Permit> {
        let left = queue.free.checked_sub(1)?;
        let now = Instant::now();
        if left == 0 {
            queue.credit.earn(now, self.policy);
        }
        queue.free = left;
        Some(Permit { limiter: Arc::clone(self), since: now })
    }

    /// Takes back a permit. If a request waits for it, returns the sender that passes the permit to this request.
    /// `held` is the time for which the permit was held.
    fn release(&self, now: Instant, held: Duration) -> Option<oneshot::Sender<Permit>> {
        let mut queue = self.queue();
        queue.record_hold(held.min(self.policy.overload_deadline));
        let next = queue.started.pop_front().or_else(|| queue.dequeue(now, self.policy));
        if next.is_none() {
            if queue.free == 0 {
                queue.credit.spend(now, 0, self.policy);
            }
            queue.free += 1;
        }
        next
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // The queue of a poisoned lock is consistent, because no change of it can panic half-way.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
