//! Limits how many decisions are computed at the same time, and sheds load when more requests arrive than can be
//! served.
//!
//! A decision is mostly CPU work. If every decision were computed as soon as its request arrived, the thread would not
//! read the sockets of later requests. These requests would wait in kernel buffers, where the server can neither count
//! nor reject them. Therefore a decision first takes a permit from a [`ConcurrencyLimiter`]. A thread that has computed
//! for a while yields to the runtime, so the runtime can read new requests. A request without a permit waits in a
//! bounded queue. It is rejected with HTTP 429 when its deadline expires.
//!
//! The queue is FIFO, and combines two known techniques:
//!
//! * **Token bucket for bursts.** Idle time earns credit, and busy time spends it. The queue counts as a burst while there
//!   is credit, or while it is no longer than the number of connections that API servers keep open. In a burst, requests
//!   wait for up to [`QueuePolicy::deadline`]. If the credit is used up and the queue is longer, the limiter is in
//!   overload until the credit is full again.
//! * **CoDel-like deadline and capacity.** In overload, a request waits for at most [`QueuePolicy::overload_deadline`].
//!   The queue holds no more requests than can be served within that time, and a newer request evicts the oldest. So
//!   served requests hardly wait, although the queue is FIFO.
//!
//! A decision that has started holds no permit while it waits for I/O. When it continues, it takes precedence over all
//! requests that have not started.

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
    /// Maximum number of requests that wait for their first permit.
    capacity: usize,
    policy: QueuePolicy,
    /// Computing time after which a thread yields to the runtime.
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
    /// Creates a limiter with `permits` permits and a queue of `capacity` requests. A thread that has computed for
    /// `yield_after` yields to the runtime before the next step of a decision.
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

    /// Returns the number of requests that wait for their first permit.
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
