//! Every bound of the server, each with the reason for its size.

use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::turns::{Patience, Turns};

const MIB: usize = 1024 * 1024;

/// The API server takes objects up to 3 MiB, an UPDATE carries two of them, and the envelope gets the last MiB (C15).
pub const BODY: usize = 7 * MIB;
/// Nine of the largest bodies or ten thousand usual ones at once; parsed, that stays below half a GiB.
pub const BUFFERED: usize = 64 * MIB;
/// Three API servers with 25 pooled connections each, and a burst of six times that. It bounds memory: most of them
/// wait for their bodies or for the API server. How many compute is bounded by turns.
pub const IN_FLIGHT: usize = 512;
/// Some milliseconds' worth of usual requests; who is behind more than that is sent away in any case.
pub const WAITING: usize = 256;
/// How long a request waits for its turn when there is a crowd of them, if it is not pushed out by newer ones before. Who
/// is sent away is so within 5 ms, with three for the decision before it, the reading, a timer's tick and the way.
pub const PATIENCE: Duration = Duration::from_millis(2);
/// How long the eldest in line goes first in a crowd: 25 usual requests at once, all that an API server keeps connections for,
/// are through within that, and none of them is passed over.
pub const FAIR: Duration = Duration::from_millis(1);
/// How long a thread decides before it reads what has arrived meanwhile: half a dozen usual requests, so that the price of
/// looking is divided by as many, and no more than a tenth of [`PATIENCE`].
pub const UNREAD: Duration = Duration::from_micros(200);
/// How long a request waits for its turn when there is no crowd: sent away, it would come again after a second (C4), and
/// wait anew.
pub const LATE: Duration = Duration::from_secs(1);
/// How long the longest burst lasts: a control group's processor time comes every 100 ms.
pub const BURST: Duration = Duration::from_millis(100);
/// How much longer a burst may last for each moment in which a turn was free: a server that has something to do for five
/// sixths of the time has bursts, one that is busier than that may have a crowd.
pub const BURST_FOR_REST: u32 = 5;
/// Requests in line that are no crowd, however long there are some: all that three API servers have in flight on the 25
/// connections each that they keep. They get their turns as fast as these can be given, and sent away they would only
/// come again.
pub const LINE: usize = 75;
/// Deciding about so many bytes takes half a millisecond, as long as a dozen usual requests; handing it to another
/// thread costs a twentieth of that.
pub const LARGE: usize = 128 * 1024;
/// Largest bodies on their way to a decision, besides those that are decided: a tenth of a second's work, and with
/// [`BUFFERED`] no more than there is room for.
pub const LARGE_WAITING: usize = 8;
/// Shed answers of a second that also close their connection, at even distances. All 75 that three API servers keep have
/// moved to other replicas within that second, and the handshakes that follow take one or two hundredths of a processor's
/// time. If every such answer closed its connection, a server would soon do nothing but handshakes, which cost as much as
/// fourteen requests each; and a hundred at once would hold up everybody else for as long as they take.
pub const GOODBYES: u32 = 100;
/// Twice the requests in flight, as idle connections count too; each costs about 40 KiB of TLS and HTTP buffers.
pub const CONNECTIONS: usize = 1024;
/// What the API server itself gives a TLS handshake (C2).
pub const HANDSHAKE: Duration = Duration::from_secs(10);
/// A head is one packet; ten seconds are the API server's default for the whole call (C6).
pub const HEAD: Duration = Duration::from_secs(10);
/// The longest call that the API server allows (C6).
pub const BODY_ARRIVAL: Duration = Duration::from_secs(30);
/// Nobody waits longer than the longest call for its answer (C6).
pub const ANSWER: Duration = Duration::from_secs(30);
/// Twice the 90 s after which the API server closes an idle connection, so that it is never ours to close (C2, C3).
pub const IDLE: Duration = Duration::from_secs(180);
/// Kubernetes' own heads stay below 2 KiB, with a `traceparent` and a bearer token included.
pub const HEAD_BYTES: usize = 32 * 1024;
/// How many times the body limit is read and thrown away before a refusal: enough for a client that is a little over
/// to send all and read the answer, too little to be worth an attacker's bandwidth.
pub const DRAIN_FACTOR: usize = 4;
/// No refusal is held back longer than the API server's default for the whole call (C6).
pub const DRAIN: Duration = Duration::from_secs(10);

/// The bounds that can be set. [`Limits::default`] takes the constants of this module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one body; a larger one is answered with 413.
    pub body: usize,
    /// Bytes of all bodies that are held at once; beyond it requests are answered with 429.
    pub buffered: usize,
    /// Requests at once; beyond it they are answered with 429.
    pub in_flight: usize,
    /// Decisions that are computed at once, those about large bodies aside. By default as many as there are processors.
    pub deciding: usize,
    /// Requests that wait for a turn to be decided; beyond it the eldest is answered with 429.
    pub waiting: usize,
    /// How long they wait at most in a crowd, when a `burst` is over; then they are answered with 429.
    pub patience: Duration,
    /// How long they wait otherwise.
    pub late: Duration,
    /// How long there may be no turn free before it is a crowd that waits.
    pub burst: Duration,
    /// How many in line are no crowd.
    pub line: usize,
    /// How long a thread computes before it reads what has arrived meanwhile.
    pub unread: Duration,
    /// Bytes from which on a body is a large one, which is decided where it does not hold up others.
    pub large: usize,
    /// Shed answers a second that close their connection.
    pub goodbyes: u32,
    /// Connections at once; beyond it none is accepted until another one closes.
    pub connections: usize,
    /// For the TLS handshake.
    pub handshake: Duration,
    /// From the first byte of a request to the end of its head. Kept to a quarter.
    pub head: Duration,
    /// From the end of the head to the end of the body.
    pub body_arrival: Duration,
    /// For the client to take an answer.
    pub answer: Duration,
    /// Between an answer and the next request. Must be above 90 s outside tests (C2).
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: BODY,
            buffered: BUFFERED,
            in_flight: IN_FLIGHT,
            deciding: processors(),
            waiting: WAITING,
            patience: PATIENCE,
            late: LATE,
            burst: BURST,
            line: LINE,
            unread: UNREAD,
            large: LARGE,
            goodbyes: GOODBYES,
            connections: CONNECTIONS,
            handshake: HANDSHAKE,
            head: HEAD,
            body_arrival: BODY_ARRIVAL,
            answer: ANSWER,
            idle: IDLE,
        }
    }
}

/// As many as the process may use, by its affinity and its control group.
pub(super) fn processors() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

/// What may still be taken on. What does not fit is sent away at once (C4).
#[derive(Debug)]
pub(super) struct Load {
    pub(super) turns: Arc<Turns>,
    requests: Semaphore,
    bytes: Arc<Semaphore>,
    room: usize,
    large: Arc<Semaphore>,
    large_waiting: Semaphore,
    goodbyes: Goodbyes,
}

impl Load {
    pub(super) fn new(limits: &Limits) -> Self {
        // Half of the processors, so that the other half is there for small ones.
        let large = (limits.deciding / 2).max(1);
        let Limits { patience: crowd, late, burst, line, .. } = *limits;
        let patience = Patience { fair: FAIR, crowd, late, burst, line, rest: BURST_FOR_REST };
        Self {
            turns: Turns::new(limits.deciding, limits.waiting, patience, limits.unread),
            requests: semaphore(limits.in_flight),
            bytes: Arc::new(semaphore(limits.buffered)),
            room: limits.buffered.min(Semaphore::MAX_PERMITS),
            large: Arc::new(semaphore(large)),
            large_waiting: semaphore(LARGE_WAITING),
            goodbyes: Goodbyes::new(limits.goodbyes),
        }
    }

    /// A place among the requests in flight, until it is dropped.
    pub(super) fn request(&self) -> Option<SemaphorePermit<'_>> {
        self.requests.try_acquire().ok()
    }

    /// Room for `count` bytes, until it is dropped.
    pub(super) fn bytes(&self, count: usize) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.bytes).try_acquire_many_owned(u32::try_from(count).ok()?).ok()
    }

    /// Waits for the right to decide about a large body. `None` where too many wait for that.
    pub(super) async fn large(&self) -> Option<OwnedSemaphorePermit> {
        let _place = self.large_waiting.try_acquire().ok()?;
        Arc::clone(&self.large).acquire_owned().await.ok()
    }

    /// Whether an answer that sends a request away may close its connection too.
    pub(super) fn says_goodbye(&self) -> bool {
        self.goodbyes.one_more(Instant::now())
    }

    /// Requests that wait for a turn, and bytes of bodies that are held.
    pub(super) fn now(&self) -> (usize, usize) {
        (self.turns.waiting(), self.room.saturating_sub(self.bytes.available_permits()))
    }
}

/// So many goodbyes a second, at even distances.
#[derive(Debug)]
struct Goodbyes {
    /// From one to the next; none where there are to be none.
    gap: Option<Duration>,
    last: Mutex<Option<Instant>>,
}

impl Goodbyes {
    fn new(a_second: u32) -> Self {
        Self { gap: Duration::from_secs(1).checked_div(a_second), last: Mutex::default() }
    }

    fn one_more(&self, now: Instant) -> bool {
        let Some(gap) = self.gap else { return false };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_time = last.is_none_or(|last| now.saturating_duration_since(last) >= gap);
        if is_time {
            *last = Some(now);
        }
        is_time
    }
}

/// A semaphore of `count` permits, or as many as there can be.
pub(super) fn semaphore(count: usize) -> Semaphore {
    Semaphore::new(count.min(Semaphore::MAX_PERMITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodbyes_are_said_one_by_one() {
        let began = Instant::now();
        let goodbyes = Goodbyes::new(10);
        let said = |millis| goodbyes.one_more(began + Duration::from_millis(millis));
        assert_eq!([0, 1, 99, 100, 101, 5000, 5001].map(said), [true, false, false, true, false, true, false]);
        assert!(!Goodbyes::new(0).one_more(began));
    }
}
