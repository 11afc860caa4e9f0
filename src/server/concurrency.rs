//! Turns at the processors: how many decisions are worked on at once, and who waits.
//!
//! A decision is mostly computing. Begun one after the other as they arrive, decisions would hold up the reading of the
//! requests behind them: those would wait unseen in the kernel's buffers, all of them ever longer, and there would be
//! nobody to send them away. So a decision takes a turn first, and every so often one that has a turn lets everything be
//! read that has arrived meanwhile. What finds no turn waits for a moment, and is sent away when the moment is over.
//!
//! **A burst is waited out, a crowd is not.** What waits is a burst as long as there was rest before it, or as it is no
//! more than what API servers have in flight on the connections that they keep: it is served late rather than sent away.
//! Where more wait and there was no rest, waiting helps nobody. A crowd lasts until there has been rest again: whoever
//! is asked more than it can do, and is left alone for a moment now and then, has a crowd all the time.
//!
//! **The eldest goes first, but not in a crowd.** Where there is one, and somebody has waited for longer than is fair,
//! somebody is sent away in any case. Oldest first, all would wait as long as is allowed; so then the newest goes first,
//! and those who are served have hardly waited. And no more stand in line than are served while anybody waits: whoever
//! is pushed out by somebody newer is told so at once. What has begun and was waiting for something else, such as the API
//! server, goes before all others.

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

/// The mean of how long turns are kept is that of about so many: one that is held up does not change it by much.
const REMEMBERED: u32 = 64;

thread_local! {
    /// How long this thread has computed since it read what had arrived.
    static UNREAD: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// How long somebody waits for a first turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// In a crowd, before others are let through that came later.
    pub(super) fair: Duration,
    /// In a crowd.
    pub(super) crowd: Duration,
    /// In none.
    pub(super) late: Duration,
    /// How long the longest burst lasts.
    pub(super) burst: Duration,
    /// So many in line are no crowd.
    pub(super) line: usize,
    /// How much longer a burst may last for each moment in which a turn was free.
    pub(super) rest: u32,
}

/// A number of turns, and those who wait for one.
#[derive(Debug)]
pub(super) struct Turns {
    queue: Mutex<Queue>,
    count: usize,
    /// The most that wait for their first turn.
    places: usize,
    patience: Patience,
    /// How long a thread computes before it reads again.
    unread: Duration,
}

#[derive(Debug)]
struct Queue {
    free: usize,
    /// How long a turn is kept, in the mean.
    kept: Duration,
    burst: Burst,
    begun: VecDeque<oneshot::Sender<Turn>>,
    fresh: VecDeque<Waiting>,
}

/// How much longer what waits is taken for a burst, whoever waits.
#[derive(Debug)]
struct Burst {
    left: Duration,
    /// When that was so.
    at: Instant,
    /// Whether there was a crowd since it was as long as ever.
    is_over: bool,
}

/// Somebody in line, and since when.
#[derive(Debug)]
struct Waiting {
    since: Instant,
    turn: oneshot::Sender<Turn>,
}

/// A turn, until it is dropped: then it is the next one's.
#[derive(Debug)]
struct Turn {
    of: Arc<Turns>,
    since: Instant,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let now = Instant::now();
        if let Some(next) = self.of.next(now, now.saturating_duration_since(self.since)) {
            // Where nobody waits there any more the turn comes back, is dropped, and goes on to the one after.
            let _ = next.send(Self { of: Arc::clone(&self.of), since: now });
        }
    }
}

impl Turns {
    /// As many turns as `count`, for which at most `places` wait, and no longer than there is `patience`. What arrives is
    /// left unread for `unread` at most, and for as long as one step of a work takes.
    pub(super) fn new(count: usize, places: usize, patience: Patience, unread: Duration) -> Arc<Self> {
        let burst = Burst { left: patience.burst, at: Instant::now(), is_over: false };
        let (count, kept) = (count.max(1), Duration::ZERO);
        let queue = Queue { free: count, kept, burst, begun: VecDeque::new(), fresh: VecDeque::new() };
        Arc::new(Self { queue: Mutex::new(queue), count, places, patience, unread })
    }

    /// Runs `work` in turns: it has one whenever it computes, and none while it waits. `None` where it was sent away
    /// instead, before it had begun.
    pub(super) async fn run<T>(self: &Arc<Self>, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        let mut turn = self.first().await?;
        loop {
            catch_up(self.unread).await;
            let step = step(work.as_mut()).await;
            drop(turn);
            if let Poll::Ready(done) = step {
                return Some(done);
            }
            woken().await;
            turn = self.another().await;
        }
    }

    /// How many wait for their first turn.
    pub(super) fn waiting(&self) -> usize {
        self.queue().fresh.iter().filter(|waiting| !waiting.turn.is_closed()).count()
    }

    async fn first(self: &Arc<Self>) -> Option<Turn> {
        let (waiting, patience) = {
            let mut queue = self.queue();
            if let Some(turn) = self.free(&mut queue) {
                return Some(turn);
            }
            let now = Instant::now();
            let (patience, places) = if queue.is_crowd(now, self.patience) {
                (self.patience.crowd, self.places.min(queue.served_in(self.patience.crowd, self.count)))
            } else {
                (self.patience.late, self.places)
            };
            (queue.get_in_line(now, places), patience)
        };
        timeout(patience, waiting).await.ok()?.ok()
    }

    async fn another(self: &Arc<Self>) -> Turn {
        loop {
            let waiting = {
                let mut queue = self.queue();
                if let Some(turn) = self.free(&mut queue) {
                    return turn;
                }
                let (sender, waiting) = oneshot::channel();
                queue.begun.push_back(sender);
                waiting
            };
            // Nobody drops such a sender unused; if ever, the line is as good as before.
            if let Ok(turn) = waiting.await {
                return turn;
            }
        }
    }

    fn free(self: &Arc<Self>, queue: &mut Queue) -> Option<Turn> {
        let left = queue.free.checked_sub(1)?;
        let now = Instant::now();
        if left == 0 {
            queue.burst.rested(now, self.patience);
        }
        queue.free = left;
        Some(Turn { of: Arc::clone(self), since: now })
    }

    /// Who gets a turn that is given back after it was kept for so long; where nobody wants it, it is free.
    fn next(&self, now: Instant, kept: Duration) -> Option<oneshot::Sender<Turn>> {
        let mut queue = self.queue();
        queue.remember(kept.min(self.patience.crowd));
        let next = queue.begun.pop_front().or_else(|| queue.first_in_line(now, self.patience));
        if next.is_none() {
            if queue.free == 0 {
                queue.burst.worked(now, 0, self.patience);
            }
            queue.free += 1;
        }
        next
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Every change is made whole before anything can panic.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// One more turn that was kept for so long.
    fn remember(&mut self, kept: Duration) {
        self.kept = self.kept.saturating_sub(self.kept / REMEMBERED).saturating_add(kept / REMEMBERED);
    }

    /// How many get one of `count` turns within a time, one at least.
    fn served_in(&self, time: Duration, count: usize) -> usize {
        let each = time.as_nanos() / self.kept.as_nanos().max(1);
        usize::try_from(each).unwrap_or(usize::MAX).saturating_mul(count).max(1)
    }

    /// The last of so many places in line, for which the eldest is sent away where all are taken.
    fn get_in_line(&mut self, since: Instant, places: usize) -> oneshot::Receiver<Turn> {
        let (turn, waiting) = oneshot::channel();
        self.fresh.push_back(Waiting { since, turn });
        self.forget_gone();
        while self.fresh.len() > places {
            self.fresh.pop_front();
        }
        waiting
    }

    /// Lets go of the eldest who wait no more.
    fn forget_gone(&mut self) {
        while self.fresh.front().is_some_and(|waiting| waiting.turn.is_closed()) {
            self.fresh.pop_front();
        }
    }

    /// Whether the burst is over, when no turn is free.
    fn is_crowd(&mut self, now: Instant, patience: Patience) -> bool {
        self.forget_gone();
        self.burst.worked(now, self.fresh.len(), patience);
        self.burst.is_over
    }

    fn first_in_line(&mut self, now: Instant, patience: Patience) -> Option<oneshot::Sender<Turn>> {
        self.forget_gone();
        let eldest = self.fresh.front()?.since;
        let has_waited = |since, time| now.saturating_duration_since(since) > time;
        let is_stuck = self.is_crowd(now, patience) && has_waited(eldest, patience.fair);
        if !is_stuck {
            return self.fresh.pop_front().map(|waiting| waiting.turn);
        }
        let newest = self.fresh.pop_back();
        // Their timers may be a tick late, and know nothing of a crowd where there was none yet.
        while self.fresh.front().is_some_and(|waiting| has_waited(waiting.since, patience.crowd)) {
            self.fresh.pop_front();
        }
        newest.map(|waiting| waiting.turn)
    }
}

impl Burst {
    /// Some turn was free until now.
    fn rested(&mut self, now: Instant, patience: Patience) {
        let rest = now.saturating_duration_since(self.at).saturating_mul(patience.rest);
        let left = self.left.saturating_add(rest).min(patience.burst);
        *self = Self { left, at: now, is_over: self.is_over && left < patience.burst };
    }

    /// None was, and so many wait. A step that takes longer than is waited for in a crowd was itself without a processor.
    fn worked(&mut self, now: Instant, waiting: usize, patience: Patience) {
        let work = now.saturating_duration_since(self.at).min(patience.crowd);
        let left = self.left.saturating_sub(work);
        let is_crowd = left.is_zero() && waiting > patience.line;
        *self = Self { left, at: now, is_over: self.is_over || is_crowd };
    }
}

/// Runs `work` step by step, each with one of the permits of `turns`, in the order of arrival, and sends nobody away. What
/// arrives is left unread for no longer than with [`Turns`].
pub(super) async fn stepwise<T>(turns: &Semaphore, unread: Duration, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    loop {
        // An error would be a semaphore that is closed; this one never is.
        let turn = turns.acquire().await;
        catch_up(unread).await;
        let step = step(work.as_mut()).await;
        drop(turn);
        if let Poll::Ready(done) = step {
            return done;
        }
        woken().await;
    }
}

/// What has arrived meanwhile is read first, when that was long enough ago: it gets in line or is sent away.
async fn catch_up(unread: Duration) {
    if UNREAD.get() >= unread {
        UNREAD.set(Duration::ZERO);
        yield_now().await;
    }
}

/// Computes until `work` waits for something else, or is done.
async fn step<T>(mut work: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    let began = Instant::now();
    let step = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await;
    UNREAD.set(UNREAD.get().saturating_add(began.elapsed()));
    step
}

/// Waits for whatever the step before has asked to be woken by. To be woken in vain costs a step, no more.
async fn woken() {
    let mut asked = false;
    poll_fn(|_| if std::mem::replace(&mut asked, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use futures::future::{join_all, pending};
    use tokio::sync::Notify;

    use super::*;

    const LONG: Patience = Patience {
        fair: Duration::from_secs(60),
        crowd: Duration::from_secs(60),
        late: Duration::from_secs(60),
        burst: Duration::from_secs(60),
        line: 0,
        rest: 5,
    };

    /// That read before every step.
    fn turns(count: usize, places: usize, patience: Patience) -> Arc<Turns> {
        Turns::new(count, places, patience, Duration::ZERO)
    }

    /// Who has decided, in order.
    #[derive(Default)]
    struct Order(Mutex<Vec<usize>>);

    impl Order {
        async fn decide(&self, number: usize) {
            self.0.lock().unwrap().push(number);
        }

        fn so_far(&self) -> Vec<usize> {
            self.0.lock().unwrap().clone()
        }
    }

    #[tokio::test]
    async fn the_eldest_goes_first_in_a_line_that_moves() {
        let turns = turns(1, 9, LONG);
        let order = Order::default();
        join_all((0..6).map(|number| turns.run(order.decide(number)))).await;
        assert_eq!(order.so_far(), [0, 1, 2, 3, 4, 5]);
    }

    #[tokio::test]
    async fn the_newest_goes_first_in_a_crowd_and_the_eldest_is_sent_away() {
        let turns = turns(1, 3, Patience { fair: Duration::ZERO, burst: Duration::ZERO, ..LONG });
        let order = Order::default();
        let served = join_all((0..6).map(|number| turns.run(order.decide(number)))).await;
        assert_eq!(order.so_far(), [0, 5, 4, 3]);
        assert_eq!(served, [Some(()), None, None, Some(()), Some(()), Some(())]);
        assert_eq!((turns.waiting(), turns.queue().free), (0, 1));
    }

    #[tokio::test]
    async fn what_has_arrived_is_read_when_that_was_long_ago() {
        let turns = Turns::new(1, 9, LONG, Duration::from_millis(1));
        let (quick, slow) = (async {}, async { std::thread::sleep(Duration::from_millis(2)) });
        assert!(turns.run(quick).now_or_never().is_some(), "nothing is unread yet");
        assert!(turns.run(slow).now_or_never().is_some());
        assert!(turns.run(async {}).now_or_never().is_none(), "it looks for others first");
        assert!(turns.run(async {}).now_or_never().is_some());
    }

    #[tokio::test]
    async fn what_waits_for_something_else_has_no_turn() {
        let turns = turns(1, 9, LONG);
        let (order, told) = (Order::default(), Notify::new());
        let asks = async {
            order.decide(0).await;
            told.notified().await;
            order.decide(1).await;
        };
        let tells = async {
            order.decide(2).await;
            told.notify_one();
        };
        let (asks, tells) = (turns.run(asks), turns.run(tells));
        tokio::join!(asks, tells, turns.run(order.decide(3)), turns.run(order.decide(4)));
        let order = order.so_far();
        assert_eq!(order[0], 0, "{order:?}");
        let at = |number| order.iter().position(|decided| *decided == number).unwrap();
        assert!(at(1) > at(2) && order.len() == 5, "{order:?}");
    }

    #[tokio::test]
    async fn whoever_has_begun_is_next() {
        let turns = turns(1, 9, LONG);
        let first = turns.first().await.unwrap();
        let (mut fresh, mut begun) = (Box::pin(turns.first()), Box::pin(turns.another()));
        assert!(begun.as_mut().now_or_never().is_none());
        assert!(fresh.as_mut().now_or_never().is_none());
        drop(first);
        let second = begun.await;
        assert!(fresh.as_mut().now_or_never().is_none());
        drop(second);
        assert!(fresh.await.is_some());
    }

    #[tokio::test]
    async fn nobody_waits_longer_than_is_allowed() {
        let short = Duration::from_millis(3);
        for (is_crowd, patience) in
            [(true, Patience { crowd: short, ..LONG }), (false, Patience { late: short, ..LONG })]
        {
            let turns = turns(1, 9, patience);
            let busy = turns.first().await.unwrap();
            turns.queue().burst.is_over = is_crowd;
            assert!(turns.first().await.is_none());
            assert_eq!(turns.waiting(), 0);
            drop(busy);
            assert!(turns.first().await.is_some());
        }
    }

    #[tokio::test]
    async fn a_line_outlasts_a_burst() {
        let turns = turns(1, 9, Patience { burst: Duration::ZERO, crowd: Duration::ZERO, line: 1, ..LONG });
        let busy = turns.first().await.unwrap();
        let waits = turns.first();
        let ends = async {
            tokio::time::sleep(Duration::from_millis(3)).await;
            drop(busy);
        };
        assert!(tokio::join!(waits, ends).0.is_some(), "one in line is no crowd");
    }

    #[tokio::test]
    async fn those_who_waited_long_go_when_a_burst_becomes_a_crowd() {
        let turns = turns(1, 9, Patience { fair: Duration::ZERO, crowd: Duration::from_millis(3), ..LONG });
        let busy = turns.first().await.unwrap();
        let mut old = Box::pin(turns.first());
        assert!(old.as_mut().now_or_never().is_none());
        std::thread::sleep(Duration::from_millis(4));
        let mut new = Box::pin(turns.first());
        assert!(new.as_mut().now_or_never().is_none());
        turns.queue().burst.left = Duration::ZERO;
        drop(busy);
        assert!(new.await.is_some());
        assert!(old.now_or_never().unwrap().is_none(), "without waiting for its timer");
    }

    #[tokio::test]
    async fn no_more_stand_in_line_than_are_served_in_time() {
        for (burst, left) in [(Duration::ZERO, 3), (LONG.burst, 6)] {
            let turns = turns(1, 9, Patience { burst, crowd: Duration::from_millis(3), ..LONG });
            let busy = turns.first().await.unwrap();
            turns.queue().kept = Duration::from_micros(900);
            let mut line: Vec<_> = (0..6).map(|_| Box::pin(turns.first())).collect();
            let told: Vec<_> = line.iter_mut().map(|one| one.as_mut().now_or_never().is_some()).collect();
            assert_eq!(told, [false; 6], "nobody is pushed out yet when they look first");
            assert_eq!(turns.waiting(), left);
            let told = line.iter_mut().filter_map(|one| one.as_mut().now_or_never()).count();
            assert_eq!(told, 6 - left, "the rest know at once");
            drop(busy);
        }
    }

    #[test]
    fn what_is_kept_is_the_mean() {
        let mut queue = Queue {
            free: 0,
            kept: Duration::ZERO,
            burst: Burst { left: Duration::ZERO, at: Instant::now(), is_over: false },
            begun: VecDeque::new(),
            fresh: VecDeque::new(),
        };
        assert_eq!(queue.served_in(Duration::from_millis(2), 1), 2_000_000);
        (0..1000).for_each(|_| queue.remember(Duration::from_micros(500)));
        assert_eq!([1, 2].map(|count| queue.served_in(Duration::from_millis(2), count)), [4, 8]);
        queue.remember(Duration::from_millis(2));
        assert_eq!(queue.served_in(Duration::from_millis(2), 1), 3, "one that was held up counts like another");
        assert_eq!(queue.served_in(Duration::from_micros(1), 1), 1);
    }

    #[test]
    fn a_burst_lasts_as_long_as_the_rest_before_it_was_worth() {
        let patience = Patience { burst: Duration::from_millis(100), crowd: Duration::from_millis(3), ..LONG };
        let mut now = Instant::now();
        let mut burst = Burst { left: patience.burst, at: now, is_over: false };
        let mut after = |millis, is_free| {
            now += Duration::from_millis(millis);
            if is_free {
                burst.rested(now, patience)
            } else {
                burst.worked(now, 0, patience)
            }
            burst.left.as_millis()
        };
        assert_eq!([1, 2, 3].map(|millis| after(millis, false)), [99, 97, 94]);
        assert_eq!(after(90, false), 91, "nothing ran meanwhile");
        assert_eq!((0..31).map(|_| after(3, false)).last(), Some(0));
        assert_eq!([after(1, true), after(2, false), after(1000, true)], [5, 3, 100]);
    }

    #[test]
    fn a_crowd_is_more_than_a_line_and_lasts_until_there_was_rest() {
        let patience =
            Patience { burst: Duration::from_millis(100), crowd: Duration::from_millis(3), line: 75, ..LONG };
        let mut now = Instant::now();
        let mut burst = Burst { left: patience.burst, at: now, is_over: false };
        let mut step = |burst: &mut Burst, millis, waiting: Option<usize>| {
            now += Duration::from_millis(millis);
            match waiting {
                Some(waiting) => burst.worked(now, waiting, patience),
                None => burst.rested(now, patience),
            }
            burst.is_over
        };
        assert!((0..33).all(|_| !step(&mut burst, 3, Some(200))), "a burst of any size");
        assert!((0..99).all(|_| !step(&mut burst, 3, Some(75))), "a line for any time");
        assert!(step(&mut burst, 3, Some(76)));
        assert!(step(&mut burst, 3, Some(0)), "it lasts while nobody rests");
        assert!(step(&mut burst, 19, None), "nor is it over after a moment");
        assert!(!step(&mut burst, 1, None));
    }

    #[tokio::test]
    async fn a_crowd_that_rests_for_a_moment_is_soon_one_again() {
        let patience = Patience { fair: Duration::ZERO, ..LONG };
        let turns = turns(2, 9, patience);
        let (one, other) = (turns.first().await.unwrap(), turns.first().await.unwrap());
        turns.queue().burst.left = Duration::ZERO;
        drop(one);
        std::thread::sleep(Duration::from_millis(1));
        let again = turns.first().await.unwrap();
        let left = turns.queue().burst.left;
        assert!(left >= Duration::from_millis(5) && left < Duration::from_secs(60), "{left:?}");
        drop((other, again));
    }

    #[tokio::test]
    async fn a_turn_outlives_those_who_went_away() {
        let turns = turns(1, 9, LONG);
        let busy = turns.first().await.unwrap();
        let mut gone: Vec<_> = (0..9).map(|_| Box::pin(turns.first())).collect();
        assert!(gone.iter_mut().all(|waiting| waiting.as_mut().now_or_never().is_none()));
        let granted = gone.pop();
        drop(gone);
        drop(busy);
        // It has been given the turn, and never looks.
        drop(granted);
        assert!(turns.first().now_or_never().flatten().is_some());
    }

    #[tokio::test]
    async fn a_step_at_a_time_and_nobody_is_sent_away() {
        let turns = Semaphore::new(1);
        let order = Order::default();
        let never = timeout(Duration::from_millis(1), stepwise(&turns, Duration::ZERO, pending::<()>()));
        let (late, _) = tokio::join!(
            never,
            join_all((0..100).map(|number| stepwise(&turns, Duration::ZERO, order.decide(number))))
        );
        assert!(late.is_err());
        assert_eq!(order.so_far(), (0..100).collect::<Vec<_>>());
    }
}
