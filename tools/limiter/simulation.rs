//! A discrete-event simulation of requests that wait in a queue for a single permit.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use tokio::sync::oneshot::Receiver;

use super::credit::IdleCredit;
use super::queue::Queue;
use super::{Permit, QueuePolicy};

const CAPACITY: usize = 256;

/// The arrival pattern of requests, and the duration of their decisions.
#[derive(Clone, Copy)]
pub(super) struct Load {
    /// Duration of a decision.
    service: Duration,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    /// Requests arrive at random times. The first value is the arrival rate, as a multiple of the capacity. The second
    /// value is the duration of the load.
    Open(f64, Duration),
    /// Twenty bursts of requests. The first value is the number of requests in each burst. The second value is the
    /// interval between bursts.
    Bursts(usize, Duration),
    /// A fixed number of connections. Each connection sends its next request immediately after an answer, or 2 ms after
    /// a rejection. The load lasts two seconds.
    Closed(usize),
    /// Like `Closed`, but starts after 200 ms of overload. Requests during the overload are not counted.
    ClosedAfterOverload(usize),
}

impl Load {
    pub(super) fn open(service: Duration, share: f64, time: Duration) -> Self {
        Self { service, kind: Kind::Open(share, time) }
    }

    pub(super) fn bursts(service: Duration, count: usize, interval: Duration) -> Self {
        Self { service, kind: Kind::Bursts(count, interval) }
    }

    pub(super) fn closed(service: Duration, connections: usize) -> Self {
        Self { service, kind: Kind::Closed(connections) }
    }

    pub(super) fn closed_after_overload(service: Duration, connections: usize) -> Self {
        Self { service, kind: Kind::ClosedAfterOverload(connections) }
    }
}

/// The response times of a simulation, as two sorted lists: one of the decided requests, and one of the rejected
/// requests. A response time is measured from the arrival of the request.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) decided: Vec<Duration>,
    pub(super) rejected: Vec<Duration>,
}

struct Waiting {
    arrived: Instant,
    receiver: Receiver<Permit>,
}

struct Simulation {
    policy: QueuePolicy,
    load: Load,
    queue: Queue,
    began: Instant,
    /// Arrivals by time and request number. The value is true if the request comes from a connection that sends another
    /// request after the answer, as in `Kind::Closed`.
    arrivals: BTreeMap<(Instant, u64), bool>,
    /// Waiting requests by deadline and request number. The boolean value is true if the connection sends another
    /// request after the answer.
    waiting: BTreeMap<(Instant, u64), (Waiting, bool)>,
    serving: Option<(Instant, Instant, bool)>,
    count: u64,
    random: u64,
    counts_from: Instant,
    result: Outcome,
}

/// Simulates the load `load` with the queue policy `policy`. Returns the response times.
pub(super) fn run(policy: QueuePolicy, load: Load) -> Outcome {
    let began = Instant::now();
    let credit = IdleCredit::full(policy, began);
    let (started, waiting) = (VecDeque::new(), VecDeque::new());
    let queue = Queue { free: 1, mean_hold: load.service, credit, started, waiting };
    let mut simulation = Simulation {
        policy,
        load,
        queue,
        began,
        arrivals: BTreeMap::new(),
        waiting: BTreeMap::new(),
        serving: None,
        count: 0,
        random: 7,
        counts_from: began,
        result: Outcome::default(),
    };
    simulation.schedule();
    while simulation.step() {}
    simulation.result.decided.sort();
    simulation.result.rejected.sort();
    simulation.result
}

impl Simulation {
    fn schedule(&mut self) {
        match self.load.kind {
            Kind::Open(share, time) => self.open(share, time),
            Kind::Bursts(count, interval) => {
                (0..20).for_each(|burst| (0..count).for_each(|_| self.arrive(self.began + interval * burst, false)));
            }
            Kind::Closed(connections) => (0..connections).for_each(|_| self.arrive(self.began, true)),
            Kind::ClosedAfterOverload(connections) => {
                let time = Duration::from_millis(200);
                self.open(4.0, time);
                self.counts_from = self.began + time;
                (0..connections).for_each(|_| self.arrive(self.counts_from, true));
            }
        }
    }

    fn open(&mut self, share: f64, time: Duration) {
        let gap = self.load.service.as_secs_f64() / share;
        let mut at = 0.0;
        while at < time.as_secs_f64() {
            at -= gap * self.uniform().ln();
            self.arrive(self.began + Duration::from_secs_f64(at), false);
        }
    }

    /// Returns a pseudo-random number above 0 and up to 1 (xorshift).
    fn uniform(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        ((self.random >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    fn arrive(&mut self, at: Instant, repeats: bool) {
        self.count += 1;
        self.arrivals.insert((at, self.count), repeats);
    }

    /// Handles the next event. Returns false if there are no more events.
    fn step(&mut self) -> bool {
        let arrival = self.arrivals.keys().next().map(|(at, _)| *at);
        let deadline = self.waiting.keys().next().map(|(at, _)| *at);
        let end = self.serving.map(|(_, end, _)| end);
        let Some(now) = [arrival, deadline, end].into_iter().flatten().min() else { return false };
        if end == Some(now) {
            self.finish(now);
        } else if arrival == Some(now) {
            let (_, repeats) = self.arrivals.pop_first().unwrap();
            self.admit(now, repeats);
        } else {
            // The receiver is dropped here, so the queue treats the request as canceled.
            let ((at, _), (waiting, repeats)) = self.waiting.pop_first().unwrap();
            self.reject(at, waiting.arrived, repeats);
        }
        self.collect_evicted(now);
        true
    }

    fn admit(&mut self, now: Instant, repeats: bool) {
        if self.queue.free > 0 {
            self.queue.credit.earn(now, self.policy);
            self.queue.free = 0;
            self.serving = Some((now, now + self.load.service, repeats));
            return;
        }
        let (deadline, capacity) = if self.queue.is_overload(now, self.policy) {
            let deadline = self.policy.overload_deadline;
            (deadline, CAPACITY.min(self.queue.served_within(deadline, 1)))
        } else {
            (self.policy.deadline, CAPACITY)
        };
        let waiting = Waiting { arrived: now, receiver: self.queue.enqueue(now, capacity) };
        self.count += 1;
        self.waiting.insert((now + deadline, self.count), (waiting, repeats));
    }

    fn finish(&mut self, now: Instant) {
        let (arrived, _, repeats) = self.serving.take().unwrap();
        self.decide(now, arrived, repeats);
        self.queue.record_hold(self.load.service.min(self.policy.overload_deadline));
        match self.queue.dequeue(now, self.policy) {
            Some(next) => {
                next.send(Permit).unwrap();
                let is_next = |waiting: &mut (Waiting, bool)| waiting.0.receiver.try_recv().is_ok();
                let key = self.waiting.iter_mut().find_map(|(key, waiting)| is_next(waiting).then_some(*key)).unwrap();
                let (waiting, repeats) = self.waiting.remove(&key).unwrap();
                self.serving = Some((waiting.arrived, now + self.load.service, repeats));
            }
            None => {
                self.queue.credit.spend(now, 0, self.policy);
                self.queue.free = 1;
            }
        }
    }

    /// Rejects the requests that the queue has evicted. For an evicted request, the queue has dropped the sender of its
    /// channel, so the receiver reports that the channel is closed.
    fn collect_evicted(&mut self, now: Instant) {
        use tokio::sync::oneshot::error::TryRecvError::Closed;
        let is_evicted = |waiting: &mut Waiting| matches!(waiting.receiver.try_recv(), Err(Closed));
        let evicted: Vec<_> = self.waiting.extract_if(.., |_, (waiting, _)| is_evicted(waiting)).collect();
        for (_, (waiting, repeats)) in evicted {
            self.reject(now, waiting.arrived, repeats);
        }
    }

    fn decide(&mut self, now: Instant, arrived: Instant, repeats: bool) {
        if arrived >= self.counts_from {
            self.result.decided.push(now - arrived);
        }
        self.repeat(now, repeats);
    }

    fn reject(&mut self, now: Instant, arrived: Instant, repeats: bool) {
        if arrived >= self.counts_from {
            self.result.rejected.push(now - arrived);
        }
        self.repeat(now + Duration::from_millis(2), repeats);
    }

    fn repeat(&mut self, at: Instant, repeats: bool) {
        if repeats && at < self.counts_from + Duration::from_secs(2) {
            self.arrive(at, true);
        }
    }
}
