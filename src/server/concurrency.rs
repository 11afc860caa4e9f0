//! Limits how many decisions compute at the same time, and sheds load when more arrive than can be served.
//!
//! A decision is mostly CPU work. If every request computed as soon as it arrived, the thread would not read the sockets
//! of the requests behind it: they would wait in kernel buffers, where they can neither be counted nor rejected. Therefore a
//! decision first takes a permit from a [`ConcurrencyLimiter`], and a thread that has computed for a while yields to the
//! runtime, which then reads what has arrived. A request without a permit waits in a bounded queue, and is rejected with
//! HTTP 429 when its deadline expires.
//!
//! The queue combines three known techniques:
//!
//! * **Token bucket for bursts.** Idle time earns credit, busy time spends it. While there is credit, or while no more
//!   requests wait than API servers keep connections for, the queue is a burst: requests wait for up to
//!   [`QueuePolicy::deadline`]. Without credit and with a longer queue the limiter is in overload, until the credit is full again.
//! * **Adaptive LIFO.** The queue is FIFO. In overload, once the oldest request has waited longer than
//!   [`QueuePolicy::fifo_for`], the newest request is served first: some requests must be rejected in any case, and the
//!   requests that are served have then hardly waited.
//! * **CoDel-like deadline and capacity.** In overload a request waits for at most [`QueuePolicy::overload_deadline`], and the
//!   queue holds no more requests than can be served within that time; a newer request evicts the oldest.
//!
//! A decision that has started and waits for I/O holds no permit. When it continues, it precedes all requests that have not started.

use std::cell::Cell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, oneshot};
use tokio::task::yield_now;
use tokio::time::timeout;

/// Window of the moving average of permit hold times: large enough that a single slow decision hardly changes it.
const AVERAGED: u32 = 64;

thread_local! {
    /// How long this thread has computed since it last yielded to the runtime.
    static SINCE_YIELD: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// How long requests wait for their first permit, and when a queue counts as overload.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueuePolicy {
    /// In overload: how long the oldest request may wait before the queue becomes LIFO.
    pub(super) fifo_for: Duration,
    /// Maximum waiting time in overload.
    pub(super) overload_deadline: Duration,
    /// Maximum waiting time otherwise.
    pub(super) deadline: Duration,
    /// The longest burst: the idle credit when it is full.
    pub(super) burst: Duration,
    /// Queue length up to which there is never overload.
    pub(super) burst_length: usize,
    /// Credit earned per unit of idle time.
    pub(super) idle_credit: u32,
}

/// A concurrency limiter with a bounded queue, which is LIFO under overload.
#[derive(Debug)]
pub(super) struct ConcurrencyLimiter {
    queue: Mutex<Queue>,
    permits: usize,
    /// Maximum number of requests that wait for their first permit.
    capacity: usize,
    policy: QueuePolicy,
    /// How long a thread computes before it yields to the runtime.
    yield_after: Duration,
}

#[derive(Debug)]
struct Queue {
    free: usize,
    /// Moving average of permit hold times.
    mean_hold: Duration,
    credit: IdleCredit,
    /// Decisions that have started and want to continue.
    started: VecDeque<oneshot::Sender<Permit>>,
    /// Requests that wait for their first permit.
    waiting: VecDeque<Waiting>,
}

/// The token bucket that tells a burst from overload: idle time fills it, busy time drains it.
#[derive(Debug)]
struct IdleCredit {
    left: Duration,
    updated: Instant,
    /// Whether the credit ran out since it was last full.
    is_overload: bool,
}

/// A request in the queue.
#[derive(Debug)]
struct Waiting {
    since: Instant,
    permit: oneshot::Sender<Permit>,
}

/// The right to compute. When dropped, it passes to the next request in the queue.
#[derive(Debug)]
struct Permit {
    limiter: Arc<ConcurrencyLimiter>,
    since: Instant,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let now = Instant::now();
        if let Some(next) = self.limiter.release(now, now.saturating_duration_since(self.since)) {
            // If the receiver is gone, the permit comes back in the error, is dropped, and passes to the request after it.
            let _ = next.send(Self { limiter: Arc::clone(&self.limiter), since: now });
        }
    }
}

impl ConcurrencyLimiter {
    /// Returns a limiter of `permits` permits and a queue of `capacity` requests. A thread yields to the runtime after it has
    /// computed for `yield_after`, at the next point at which a decision waits.
    pub(super) fn new(permits: usize, capacity: usize, policy: QueuePolicy, yield_after: Duration) -> Arc<Self> {
        let credit = IdleCredit::full(policy, Instant::now());
        let permits = permits.max(1);
        let (started, waiting) = (VecDeque::new(), VecDeque::new());
        let queue = Queue { free: permits, mean_hold: Duration::ZERO, credit, started, waiting };
        Arc::new(Self { queue: Mutex::new(queue), permits, capacity, policy, yield_after })
    }

    /// Runs `work`, which holds a permit whenever it computes and none while it waits. Returns `None` if the request was
    /// rejected before the work started.
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

    /// Takes back a permit that was held for `held`, and returns the request that gets it next, if any waits.
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
        // A poisoned lock still guards a consistent queue: no change can panic half-way.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn record_hold(&mut self, held: Duration) {
        self.mean_hold = self.mean_hold.saturating_sub(self.mean_hold / AVERAGED).saturating_add(held / AVERAGED);
    }

    /// Returns how many requests get one of `permits` permits within `time`; at least one.
    fn served_within(&self, time: Duration, permits: usize) -> usize {
        let each = time.as_nanos() / self.mean_hold.as_nanos().max(1);
        usize::try_from(each).unwrap_or(usize::MAX).saturating_mul(permits).max(1)
    }

    /// Appends a request, and evicts the oldest ones beyond `capacity`.
    fn enqueue(&mut self, since: Instant, capacity: usize) -> oneshot::Receiver<Permit> {
        let (permit, receiver) = oneshot::channel();
        self.waiting.push_back(Waiting { since, permit });
        self.drop_cancelled();
        while self.waiting.len() > capacity {
            self.waiting.pop_front();
        }
        receiver
    }

    /// Removes the oldest requests whose deadline has expired or whose connection has closed.
    fn drop_cancelled(&mut self) {
        while self.waiting.front().is_some_and(|waiting| waiting.permit.is_closed()) {
            self.waiting.pop_front();
        }
    }

    /// Returns whether the limiter is in overload. To be called only while no permit is free.
    fn is_overload(&mut self, now: Instant, policy: QueuePolicy) -> bool {
        self.drop_cancelled();
        self.credit.spend(now, self.waiting.len(), policy);
        self.credit.is_overload
    }

    fn dequeue(&mut self, now: Instant, policy: QueuePolicy) -> Option<oneshot::Sender<Permit>> {
        self.drop_cancelled();
        let oldest = self.waiting.front()?.since;
        let has_waited = |since, time| now.saturating_duration_since(since) > time;
        let is_lifo = self.is_overload(now, policy) && has_waited(oldest, policy.fifo_for);
        if !is_lifo {
            return self.waiting.pop_front().map(|waiting| waiting.permit);
        }
        let newest = self.waiting.pop_back();
        // Their own timers may be a tick late, or were set with the longer deadline before the overload began.
        while self.waiting.front().is_some_and(|waiting| has_waited(waiting.since, policy.overload_deadline)) {
            self.waiting.pop_front();
        }
        newest.map(|waiting| waiting.permit)
    }
}

impl IdleCredit {
    fn full(policy: QueuePolicy, now: Instant) -> Self {
        Self { left: policy.burst, updated: now, is_overload: false }
    }

    /// Adds the time since the last update, in which a permit was free.
    fn earn(&mut self, now: Instant, policy: QueuePolicy) {
        let earned = now.saturating_duration_since(self.updated).saturating_mul(policy.idle_credit);
        let left = self.left.saturating_add(earned).min(policy.burst);
        *self = Self { left, updated: now, is_overload: self.is_overload && left < policy.burst };
    }

    /// Subtracts the time since the last update, in which no permit was free and `waiting` requests waited.
    fn spend(&mut self, now: Instant, waiting: usize, policy: QueuePolicy) {
        // A longer step means that this process itself was not scheduled.
        let spent = now.saturating_duration_since(self.updated).min(policy.overload_deadline);
        let left = self.left.saturating_sub(spent);
        let is_overload = left.is_zero() && waiting > policy.burst_length;
        *self = Self { left, updated: now, is_overload: self.is_overload || is_overload };
    }
}

/// Runs `work` step by step. Each step holds one of `permits`, in FIFO order, and no request is rejected. Yields to the runtime
/// as [`ConcurrencyLimiter::run`] does.
pub(super) async fn stepwise<T>(permits: &Semaphore, yield_after: Duration, work: impl Future<Output = T>) -> T {
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

/// Yields to the runtime if this thread has computed for `yield_after`, so that new requests are read and queued or rejected.
async fn yield_if_due(yield_after: Duration) {
    if SINCE_YIELD.get() >= yield_after {
        SINCE_YIELD.set(Duration::ZERO);
        yield_now().await;
    }
}

/// Polls `work` once, and records how long that took.
async fn step<T>(mut work: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    let began = Instant::now();
    let step = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await;
    SINCE_YIELD.set(SINCE_YIELD.get().saturating_add(began.elapsed()));
    step
}

/// Waits until the waker that the last step registered is called. A spurious wake-up costs one step.
async fn woken() {
    let mut polled = false;
    poll_fn(|_| if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use futures::future::{join_all, pending};
    use tokio::sync::Notify;

    use super::*;

    const LONG: QueuePolicy = QueuePolicy {
        fifo_for: Duration::from_secs(60),
        overload_deadline: Duration::from_secs(60),
        deadline: Duration::from_secs(60),
        burst: Duration::from_secs(60),
        burst_length: 0,
        idle_credit: 5,
    };

    /// Returns a limiter that yields before every step.
    fn limiter(permits: usize, capacity: usize, policy: QueuePolicy) -> Arc<ConcurrencyLimiter> {
        ConcurrencyLimiter::new(permits, capacity, policy, Duration::ZERO)
    }

    /// The numbers of the decisions in the order in which they were made.
    #[derive(Default)]
    struct Order(Mutex<Vec<usize>>);

    impl Order {
        async fn decide(&self, number: usize) {
            self.0.lock().unwrap().push(number);
        }

        fn decided(&self) -> Vec<usize> {
            self.0.lock().unwrap().clone()
        }
    }

    #[tokio::test]
    async fn serves_requests_in_order_of_arrival() {
        let limiter = limiter(1, 9, LONG);
        let order = Order::default();
        join_all((0..6).map(|number| limiter.run(order.decide(number)))).await;
        assert_eq!(order.decided(), [0, 1, 2, 3, 4, 5]);
    }

    #[tokio::test]
    async fn serves_newest_and_evicts_oldest_request_under_overload() {
        let limiter = limiter(1, 3, QueuePolicy { fifo_for: Duration::ZERO, burst: Duration::ZERO, ..LONG });
        let order = Order::default();
        let served = join_all((0..6).map(|number| limiter.run(order.decide(number)))).await;
        assert_eq!(order.decided(), [0, 5, 4, 3]);
        assert_eq!(served, [Some(()), None, None, Some(()), Some(()), Some(())]);
        assert_eq!((limiter.waiting(), limiter.queue().free), (0, 1));
    }

    #[tokio::test]
    async fn yields_to_the_runtime_after_computing_long_enough() {
        let limiter = ConcurrencyLimiter::new(1, 9, LONG, Duration::from_millis(1));
        let (quick, slow) = (async {}, async { std::thread::sleep(Duration::from_millis(2)) });
        assert!(limiter.run(quick).now_or_never().is_some(), "has not computed yet");
        assert!(limiter.run(slow).now_or_never().is_some());
        assert!(limiter.run(async {}).now_or_never().is_none(), "yields first");
        assert!(limiter.run(async {}).now_or_never().is_some());
    }

    #[tokio::test]
    async fn holds_no_permit_while_waiting_for_io() {
        let limiter = limiter(1, 9, LONG);
        let (order, ready) = (Order::default(), Notify::new());
        let waits = async {
            order.decide(0).await;
            ready.notified().await;
            order.decide(1).await;
        };
        let notifies = async {
            order.decide(2).await;
            ready.notify_one();
        };
        let (waits, notifies) = (limiter.run(waits), limiter.run(notifies));
        tokio::join!(waits, notifies, limiter.run(order.decide(3)), limiter.run(order.decide(4)));
        let order = order.decided();
        assert_eq!(order[0], 0, "{order:?}");
        let at = |number| order.iter().position(|decided| *decided == number).unwrap();
        assert!(at(1) > at(2) && order.len() == 5, "{order:?}");
    }

    #[tokio::test]
    async fn serves_started_decisions_before_new_requests() {
        let limiter = limiter(1, 9, LONG);
        let first = limiter.first_permit().await.unwrap();
        let (mut fresh, mut begun) = (Box::pin(limiter.first_permit()), Box::pin(limiter.next_permit()));
        assert!(begun.as_mut().now_or_never().is_none());
        assert!(fresh.as_mut().now_or_never().is_none());
        drop(first);
        let second = begun.await;
        assert!(fresh.as_mut().now_or_never().is_none());
        drop(second);
        assert!(fresh.await.is_some());
    }

    #[tokio::test]
    async fn rejects_requests_after_their_deadline() {
        let short = Duration::from_millis(3);
        for (is_overload, policy) in
            [(true, QueuePolicy { overload_deadline: short, ..LONG }), (false, QueuePolicy { deadline: short, ..LONG })]
        {
            let limiter = limiter(1, 9, policy);
            let busy = limiter.first_permit().await.unwrap();
            limiter.queue().credit.is_overload = is_overload;
            assert!(limiter.first_permit().await.is_none());
            assert_eq!(limiter.waiting(), 0);
            drop(busy);
            assert!(limiter.first_permit().await.is_some());
        }
    }

    #[tokio::test]
    async fn queue_up_to_burst_length_is_never_overload() {
        let limiter = limiter(
            1,
            9,
            QueuePolicy { burst: Duration::ZERO, overload_deadline: Duration::ZERO, burst_length: 1, ..LONG },
        );
        let busy = limiter.first_permit().await.unwrap();
        let waits = limiter.first_permit();
        let ends = async {
            tokio::time::sleep(Duration::from_millis(3)).await;
            drop(busy);
        };
        assert!(tokio::join!(waits, ends).0.is_some(), "a queue of one is not overload");
    }

    #[tokio::test]
    async fn evicts_expired_requests_when_a_burst_becomes_overload() {
        let limiter = limiter(
            1,
            9,
            QueuePolicy { fifo_for: Duration::ZERO, overload_deadline: Duration::from_millis(3), ..LONG },
        );
        let busy = limiter.first_permit().await.unwrap();
        let mut old = Box::pin(limiter.first_permit());
        assert!(old.as_mut().now_or_never().is_none());
        std::thread::sleep(Duration::from_millis(4));
        let mut new = Box::pin(limiter.first_permit());
        assert!(new.as_mut().now_or_never().is_none());
        limiter.queue().credit.left = Duration::ZERO;
        drop(busy);
        assert!(new.await.is_some());
        assert!(old.now_or_never().unwrap().is_none(), "evicted without waiting for its timer");
    }

    #[tokio::test]
    async fn bounds_the_queue_by_what_can_be_served_in_time() {
        for (burst, left) in [(Duration::ZERO, 3), (LONG.burst, 6)] {
            let limiter = limiter(1, 9, QueuePolicy { burst, overload_deadline: Duration::from_millis(3), ..LONG });
            let busy = limiter.first_permit().await.unwrap();
            limiter.queue().mean_hold = Duration::from_micros(900);
            let mut queued: Vec<_> = (0..6).map(|_| Box::pin(limiter.first_permit())).collect();
            let rejected: Vec<_> = queued.iter_mut().map(|one| one.as_mut().now_or_never().is_some()).collect();
            assert_eq!(rejected, [false; 6], "no request is evicted when it is first polled");
            assert_eq!(limiter.waiting(), left);
            let rejected = queued.iter_mut().filter_map(|one| one.as_mut().now_or_never()).count();
            assert_eq!(rejected, 6 - left, "the others are rejected at once");
            drop(busy);
        }
    }

    #[test]
    fn averages_permit_hold_times() {
        let mut queue = Queue {
            free: 0,
            mean_hold: Duration::ZERO,
            credit: IdleCredit { left: Duration::ZERO, updated: Instant::now(), is_overload: false },
            started: VecDeque::new(),
            waiting: VecDeque::new(),
        };
        assert_eq!(queue.served_within(Duration::from_millis(2), 1), 2_000_000);
        (0..1000).for_each(|_| queue.record_hold(Duration::from_micros(500)));
        assert_eq!([1, 2].map(|count| queue.served_within(Duration::from_millis(2), count)), [4, 8]);
        queue.record_hold(Duration::from_millis(2));
        assert_eq!(queue.served_within(Duration::from_millis(2), 1), 3, "one slow decision does not dominate");
        assert_eq!(queue.served_within(Duration::from_micros(1), 1), 1);
    }

    #[test]
    fn idle_time_earns_credit_and_busy_time_spends_it() {
        let policy =
            QueuePolicy { burst: Duration::from_millis(100), overload_deadline: Duration::from_millis(3), ..LONG };
        let mut now = Instant::now();
        let mut credit = IdleCredit { left: policy.burst, updated: now, is_overload: false };
        let mut after = |millis, is_free| {
            now += Duration::from_millis(millis);
            if is_free {
                credit.earn(now, policy)
            } else {
                credit.spend(now, 0, policy)
            }
            credit.left.as_millis()
        };
        assert_eq!([1, 2, 3].map(|millis| after(millis, false)), [99, 97, 94]);
        assert_eq!(after(90, false), 91, "the process was not scheduled");
        assert_eq!((0..31).map(|_| after(3, false)).last(), Some(0));
        assert_eq!([after(1, true), after(2, false), after(1000, true)], [5, 3, 100]);
    }

    #[test]
    fn overload_needs_a_long_queue_and_ends_with_full_credit() {
        let policy = QueuePolicy {
            burst: Duration::from_millis(100),
            overload_deadline: Duration::from_millis(3),
            burst_length: 75,
            ..LONG
        };
        let mut now = Instant::now();
        let mut credit = IdleCredit { left: policy.burst, updated: now, is_overload: false };
        let mut step = |credit: &mut IdleCredit, millis, waiting: Option<usize>| {
            now += Duration::from_millis(millis);
            match waiting {
                Some(waiting) => credit.spend(now, waiting, policy),
                None => credit.earn(now, policy),
            }
            credit.is_overload
        };
        assert!((0..33).all(|_| !step(&mut credit, 3, Some(200))), "a burst of any length");
        assert!((0..99).all(|_| !step(&mut credit, 3, Some(75))), "a short queue for any time");
        assert!(step(&mut credit, 3, Some(76)));
        assert!(step(&mut credit, 3, Some(0)), "overload lasts while no permit is free");
        assert!(step(&mut credit, 19, None), "overload outlasts a short idle period");
        assert!(!step(&mut credit, 1, None));
    }

    #[tokio::test]
    async fn short_idle_period_earns_little_credit() {
        let policy = QueuePolicy { fifo_for: Duration::ZERO, ..LONG };
        let limiter = limiter(2, 9, policy);
        let (one, other) = (limiter.first_permit().await.unwrap(), limiter.first_permit().await.unwrap());
        limiter.queue().credit.left = Duration::ZERO;
        drop(one);
        std::thread::sleep(Duration::from_millis(1));
        let again = limiter.first_permit().await.unwrap();
        let left = limiter.queue().credit.left;
        assert!(left >= Duration::from_millis(5) && left < Duration::from_secs(60), "{left:?}");
        drop((other, again));
    }

    #[tokio::test]
    async fn permit_survives_cancelled_requests() {
        let limiter = limiter(1, 9, LONG);
        let busy = limiter.first_permit().await.unwrap();
        let mut gone: Vec<_> = (0..9).map(|_| Box::pin(limiter.first_permit())).collect();
        assert!(gone.iter_mut().all(|waiting| waiting.as_mut().now_or_never().is_none()));
        let granted = gone.pop();
        drop(gone);
        drop(busy);
        // It was granted the permit and is never polled again.
        drop(granted);
        assert!(limiter.first_permit().now_or_never().flatten().is_some());
    }

    #[tokio::test]
    async fn stepwise_rejects_no_request() {
        let permits = Semaphore::new(1);
        let order = Order::default();
        let never = timeout(Duration::from_millis(1), stepwise(&permits, Duration::ZERO, pending::<()>()));
        let (late, _) = tokio::join!(
            never,
            join_all((0..100).map(|number| stepwise(&permits, Duration::ZERO, order.decide(number))))
        );
        assert!(late.is_err());
        assert_eq!(order.decided(), (0..100).collect::<Vec<_>>());
    }
}
