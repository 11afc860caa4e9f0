use futures::FutureExt as _;
use futures::future::{join_all, pending};
use tokio::sync::{Notify, Semaphore};

use super::*;

const LONG: QueuePolicy = QueuePolicy {
    overload_deadline: Duration::from_secs(60),
    deadline: Duration::from_secs(60),
    burst: Duration::from_secs(60),
    burst_length: 0,
    idle_credit: 5,
};

/// Creates a concurrency limiter for tests. Its method `run` yields to the Tokio runtime before every poll, because
/// `yield_after` is zero.
fn limiter(permits: usize, capacity: usize, policy: QueuePolicy) -> Arc<ConcurrencyLimiter> {
    ConcurrencyLimiter::new(permits, capacity, policy, Duration::ZERO)
}

/// The ids of decisions, in the order in which the decisions were computed.
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
async fn evicts_oldest_requests_under_overload() {
    let limiter = limiter(1, 3, QueuePolicy { burst: Duration::ZERO, ..LONG });
    let order = Order::default();
    let served = join_all((0..6).map(|number| limiter.run(order.decide(number)))).await;
    assert_eq!(order.decided(), [0, 3, 4, 5]);
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
    let limiter = limiter(1, 9, QueuePolicy { overload_deadline: Duration::from_millis(3), ..LONG });
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
    let policy = QueuePolicy { burst: Duration::from_millis(100), overload_deadline: Duration::from_millis(3), ..LONG };
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
    let limiter = limiter(2, 9, LONG);
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
    // This request was granted the permit, but is never polled again.
    drop(granted);
    assert!(limiter.first_permit().now_or_never().flatten().is_some());
}

#[tokio::test]
async fn stepwise_rejects_no_request() {
    let permits = Semaphore::new(1);
    let order = Order::default();
    let never = timeout(Duration::from_millis(1), stepwise(&permits, Duration::ZERO, pending::<()>()));
    let (late, _) =
        tokio::join!(never, join_all((0..100).map(|number| stepwise(&permits, Duration::ZERO, order.decide(number)))));
    assert!(late.is_err());
    assert_eq!(order.decided(), (0..100).collect::<Vec<_>>());
}
