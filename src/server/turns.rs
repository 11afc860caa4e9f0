//! Turns at the processors: how many decisions are worked on at once, and who waits.
//!
//! A decision is mostly computing. Begun one after the other as they arrive, decisions would hold up the reading of the
//! requests behind them: those would wait unseen in the kernel's buffers, all of them ever longer, and there would be
//! nobody to send them away. So a decision takes a turn first, and every so often one that has a turn lets everything be
//! read that has arrived meanwhile. What finds no turn waits for a moment, and is sent away when the moment is over.
//!
//! **A burst is waited out, a crowd is not.** As long as some turn was free a moment ago, what waits is a burst, or the
//! process was itself without a processor; it is served late rather than sent away. Where none has been free for as
//! long as a burst may last, waiting helps nobody. A turn that was free for no longer than it takes to read the next
//! request was not free.
//!
//! **The eldest goes first, but not in a crowd.** Where there is one, and somebody has waited for longer than is fair,
//! somebody is sent away in any case. Oldest first, all would wait as long as is allowed; so then the newest goes first,
//! and those who are served have hardly waited. What has begun and was waiting for something else, such as the API
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

thread_local! {
    /// How long this thread has computed since it read what had arrived.
    static UNREAD: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// How long somebody waits for a first turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// In a crowd, before others are let through that came later; and for how long a turn has to be free for it to count.
    pub(super) fair: Duration,
    /// In a burst, and how long one lasts.
    pub(super) burst: Duration,
    /// When no turn has been free for longer than that.
    pub(super) crowd: Duration,
}

/// A number of turns, and those who wait for one.
#[derive(Debug)]
pub(super) struct Turns {
    queue: Mutex<Queue>,
    /// The most that wait for their first turn.
    places: usize,
    patience: Patience,
    /// How long a thread computes before it reads again.
    unread: Duration,
}

#[derive(Debug)]
struct Queue {
    free: usize,
    /// Since when no turn is free, or was for long.
    taken: Option<Instant>,
    /// Since when one is.
    freed: Option<Instant>,
    begun: VecDeque<oneshot::Sender<Turn>>,
    fresh: VecDeque<Waiting>,
}

/// Somebody in line, and since when.
#[derive(Debug)]
struct Waiting {
    since: Instant,
    turn: oneshot::Sender<Turn>,
}

/// A turn, until it is dropped: then it is the next one's.
#[derive(Debug)]
struct Turn(Arc<Turns>);

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(next) = self.0.next() {
            // Where nobody waits there any more the turn comes back, is dropped, and goes on to the one after.
            let _ = next.send(Self(Arc::clone(&self.0)));
        }
    }
}

impl Turns {
    /// As many turns as `count`, for which at most `places` wait, and no longer than there is `patience`. What arrives is
    /// left unread for `unread` at most, and for as long as one step of a work takes.
    pub(super) fn new(count: usize, places: usize, patience: Patience, unread: Duration) -> Arc<Self> {
        let queue =
            Queue { free: count.max(1), taken: None, freed: None, begun: VecDeque::new(), fresh: VecDeque::new() };
        Arc::new(Self { queue: Mutex::new(queue), places, patience, unread })
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
            (self.get_in_line(&mut queue, now), self.patience.at(now, queue.taken))
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
        queue.free = queue.free.checked_sub(1)?;
        if queue.free == 0 {
            let now = Instant::now();
            let was_free =
                queue.freed.take().is_none_or(|since| now.saturating_duration_since(since) > self.patience.fair);
            queue.taken = queue.taken.filter(|_| !was_free).or(Some(now));
        }
        Some(Turn(Arc::clone(self)))
    }

    /// A place at the end of the line, for which the eldest is sent away where the line is full.
    fn get_in_line(&self, queue: &mut Queue, since: Instant) -> oneshot::Receiver<Turn> {
        let (turn, waiting) = oneshot::channel();
        queue.fresh.push_back(Waiting { since, turn });
        queue.forget_gone();
        while queue.fresh.len() > self.places {
            queue.fresh.pop_front();
        }
        waiting
    }

    /// Who gets a turn that is given back; where nobody wants it, it is free.
    fn next(&self) -> Option<oneshot::Sender<Turn>> {
        let mut queue = self.queue();
        let next = queue.begun.pop_front().or_else(|| queue.first_in_line(self.patience));
        if next.is_none() {
            queue.free += 1;
            queue.freed = queue.freed.or_else(|| Some(Instant::now()));
        }
        next
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Every change is made whole before anything can panic.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Lets go of the eldest who wait no more.
    fn forget_gone(&mut self) {
        while self.fresh.front().is_some_and(|waiting| waiting.turn.is_closed()) {
            self.fresh.pop_front();
        }
    }

    fn first_in_line(&mut self, patience: Patience) -> Option<oneshot::Sender<Turn>> {
        self.forget_gone();
        let (now, eldest) = (Instant::now(), self.fresh.front()?.since);
        let is_stuck = patience.is_crowd(now, self.taken) && now.saturating_duration_since(eldest) > patience.fair;
        let first = if is_stuck { self.fresh.pop_back() } else { self.fresh.pop_front() };
        first.map(|waiting| waiting.turn)
    }
}

impl Patience {
    fn at(self, now: Instant, taken: Option<Instant>) -> Duration {
        if self.is_crowd(now, taken) { self.crowd } else { self.burst }
    }

    fn is_crowd(self, now: Instant, taken: Option<Instant>) -> bool {
        taken.is_some_and(|since| now.saturating_duration_since(since) >= self.burst)
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

    const LONG: Patience =
        Patience { fair: Duration::from_secs(60), burst: Duration::from_secs(60), crowd: Duration::from_secs(60) };

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
        let turns = turns(1, 9, Patience { burst: Duration::ZERO, crowd: Duration::from_millis(3), ..LONG });
        let busy = turns.first().await.unwrap();
        assert!(turns.first().await.is_none());
        assert_eq!(turns.waiting(), 0);
        drop(busy);
        assert!(turns.first().await.is_some());
    }

    #[test]
    fn a_burst_is_waited_out_and_a_crowd_is_not() {
        let patience = Patience { burst: Duration::from_millis(100), crowd: Duration::from_millis(3), ..LONG };
        let taken = Instant::now();
        let after = |millis| patience.at(taken + Duration::from_millis(millis), Some(taken)).as_millis();
        assert_eq!([0, 99, 100, 5000].map(after), [100, 100, 3, 3]);
        assert_eq!(patience.at(taken, None), patience.burst);
    }

    #[tokio::test]
    async fn a_turn_that_was_free_in_between_makes_it_a_burst() {
        for (fair, is_forgotten) in [(Duration::ZERO, true), (Duration::from_secs(60), false)] {
            let turns = turns(2, 9, Patience { fair, ..LONG });
            let (one, other) = (turns.first().await.unwrap(), turns.first().await.unwrap());
            let first = turns.queue().taken.unwrap();
            drop(one);
            std::thread::sleep(Duration::from_millis(1));
            let again = turns.first().await.unwrap();
            assert_eq!(turns.queue().taken.unwrap() > first, is_forgotten, "{fair:?}");
            drop((other, again));
        }
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
