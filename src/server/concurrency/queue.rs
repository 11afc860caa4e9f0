//! The bounded FIFO queue of requests. If the queue is full, it evicts the oldest requests. Under overload, it also
//! evicts requests that have waited too long.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::credit::IdleCredit;
use super::{Permit, QueuePolicy};

/// Window of the moving average of permit hold times, in requests. It is so large that a single slow decision hardly
/// changes the average.
const AVERAGED: u32 = 64;

/// The queue of a concurrency limiter, with the number of its free permits.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) free: usize,
    /// Moving average of permit hold times. A hold time is the time for which a request keeps its permit.
    pub(super) mean_hold: Duration,
    pub(super) credit: IdleCredit,
    /// Admission requests that are partly processed and wait for a permit to continue, for example after I/O. They are
    /// served before the requests in `waiting`.
    pub(super) started: VecDeque<oneshot::Sender<Permit>>,
    /// Admission requests that wait for a permit to start. Their processing has not begun.
    pub(super) waiting: VecDeque<Waiting>,
}

/// A request in the queue.
#[derive(Debug)]
pub(super) struct Waiting {
    since: Instant,
    pub(super) permit: oneshot::Sender<Permit>,
}

impl Queue {
    pub(super) fn record_hold(&mut self, held: Duration) {
        self.mean_hold = self.mean_hold.saturating_sub(self.mean_hold / AVERAGED).saturating_add(held / AVERAGED);
    }

    /// Estimates how many requests get a permit within `time`. The estimate uses the average hold time and `permits`,
    /// the total number of permits. Returns at least 1.
    pub(super) fn served_within(&self, time: Duration, permits: usize) -> usize {
        let each = time.as_nanos() / self.mean_hold.as_nanos().max(1);
        usize::try_from(each).unwrap_or(usize::MAX).saturating_mul(permits).max(1)
    }

    /// Appends a request that arrived at `since` to the queue. If the queue is then longer than `capacity`, evicts the
    /// oldest requests. Returns the receiver of the request's permit.
    pub(super) fn enqueue(&mut self, since: Instant, capacity: usize) -> oneshot::Receiver<Permit> {
        let (permit, receiver) = oneshot::channel();
        self.waiting.push_back(Waiting { since, permit });
        self.drop_cancelled();
        while self.waiting.len() > capacity {
            self.waiting.pop_front();
        }
        receiver
    }

    /// Removes cancelled requests from the front of the queue. A request is cancelled if its deadline has expired or
    /// its connection has closed.
    fn drop_cancelled(&mut self) {
        while self.waiting.front().is_some_and(|waiting| waiting.permit.is_closed()) {
            self.waiting.pop_front();
        }
    }

    /// Updates the idle credit, and returns whether the limiter is in overload. Call this method only while no permit
    /// is free.
    pub(super) fn is_overload(&mut self, now: Instant, policy: QueuePolicy) -> bool {
        self.drop_cancelled();
        self.credit.spend(now, self.waiting.len(), policy);
        self.credit.is_overload
    }

    pub(super) fn dequeue(&mut self, now: Instant, policy: QueuePolicy) -> Option<oneshot::Sender<Permit>> {
        self.drop_cancelled();
        if self.waiting.len() > 1 && self.is_overload(now, policy) {
            self.evict_expired(now, policy.overload_deadline);
        }
        self.waiting.pop_front().map(|waiting| waiting.permit)
    }

    /// Removes requests that have waited longer than `deadline`, except the newest request. Each request also has its
    /// own timer. But a timer may be late, or may still use the longer deadline from before the overload.
    fn evict_expired(&mut self, now: Instant, deadline: Duration) {
        let is_expired = |waiting: &Waiting| now.saturating_duration_since(waiting.since) > deadline;
        while self.waiting.len() > 1 && self.waiting.front().is_some_and(is_expired) {
            self.waiting.pop_front();
        }
    }
}
