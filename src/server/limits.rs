//! The limits of the server, each with the reason for its value. Also counts the requests and bodies to which the
//! limits apply.

use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::concurrency::{ConcurrencyLimiter, QueuePolicy};

const MIB: usize = 1024 * 1024;

/// Maximum size of a request body, in bytes. The API server accepts objects of up to 3 MiB, and the AdmissionReview of
/// an update contains two objects. The remaining 1 MiB is for its other fields (C15 in `docs/admission-contract.md`).
pub const BODY: usize = 7 * MIB;
/// Maximum total size of all request bodies in memory, in bytes. This is enough for nine bodies of the maximum size, or
/// for ten thousand typical ones. After parsing, the bodies need less than 512 MiB.
pub const BUFFERED: usize = 64 * MIB;
/// Maximum number of requests in flight. A request is in flight while the server receives its body, while it waits in
/// the queue, and while its decision is computed. The limit bounds the memory that requests use. It still allows
/// bursts: three API servers have 75 connections together (25 each), and the limit is almost seven times this number.
pub const IN_FLIGHT: usize = 512;
/// Maximum number of requests in the queue. The server processes this many typical requests within a few milliseconds.
/// In a longer queue, further requests would only wait until their deadline expires.
pub const WAITING: usize = 256;
/// Maximum time in the queue under overload. It is so short that a rejection reaches the client within 5 ms. The
/// remaining 3 ms are for a decision in progress, reading the request, timer resolution and the network.
pub const OVERLOAD_DEADLINE: Duration = Duration::from_millis(2);
/// Computing time after which a thread yields to the runtime, so that the runtime can read new requests. The thread
/// yields only once in about six typical decisions, which keeps the cost low. The time is a tenth of
/// [`OVERLOAD_DEADLINE`].
pub const YIELD_AFTER: Duration = Duration::from_micros(200);
/// Maximum time that a request waits in the queue while the server is not overloaded. It equals the time after which a
/// client retries a rejected request. So waiting in the queue takes no longer than a rejection and a retry.
pub const QUEUE_DEADLINE: Duration = Duration::from_secs(1);
/// Time for which all permits may be in use before a long queue counts as overload. It is 100 ms, the kernel's default
/// CFS period. A container that is throttled by its CPU limit runs again within one period.
pub const BURST: Duration = Duration::from_millis(100);
/// Seconds of credit that the server earns per second of idle time. A second in which the server is busy costs one
/// second of credit, and overload begins only when no credit is left. With the value 5, a server that is busy for up to
/// five of six seconds earns at least as much credit as it spends.
pub const IDLE_CREDIT: u32 = 5;
/// Maximum queue length at which overload never begins, in requests. It is the number of requests that three API
/// servers can have in flight: each has a pool of 25 connections. Rejecting these requests would not reduce the load,
/// because the API servers would only retry them.
pub const BURST_LENGTH: usize = 75;
/// Minimum size in bytes of a large request body. The decision about a large body runs on a separate thread, so that it
/// does not delay other requests. A decision about 128 KiB takes about 0.5 ms, as long as a dozen typical decisions.
/// The transfer to the other thread takes about 25 µs.
pub const LARGE: usize = 128 * 1024;
/// Maximum number of large bodies that wait for a decision. The server can decide about eight large bodies within a
/// tenth of a second. Eight bodies of the maximum size fit into [`BUFFERED`].
pub const LARGE_WAITING: usize = 8;
/// Maximum number of 429 responses per second that also close the connection. The client then opens a new connection,
/// possibly to another replica. Three API servers have up to 75 connections (25 each), so all of them can be closed
/// within one second. The TLS handshakes for 100 new connections take 1 to 2 % of the time of one processor.
///
/// The number is limited, because a TLS handshake costs as much as fourteen requests. If every 429 response closed its
/// connection, an overloaded server would spend most of its time on handshakes. The connections are closed at even
/// intervals, because a hundred handshakes at once would delay all other requests.
pub const CLOSES: u32 = 100;
/// Maximum number of open connections. This is twice the number of requests in flight, because idle connections count
/// too. Each connection costs about 40 KiB of TLS and HTTP buffers.
pub const CONNECTIONS: usize = 1024;
/// Timeout of a TLS handshake. The API server, which is the client, also gives up after 10 s.
pub const HANDSHAKE: Duration = Duration::from_secs(10);
/// Maximum time for receiving a request head, beginning with its first byte. A head usually fits into one packet, so
/// the limit is generous. It is the default timeout of a webhook call in Kubernetes.
pub const HEAD: Duration = Duration::from_secs(10);
/// Maximum time for receiving a request body, after the request head. It is the largest `timeoutSeconds` that
/// Kubernetes allows for a webhook.
pub const BODY_ARRIVAL: Duration = Duration::from_secs(30);
/// Maximum time for sending a response, which depends on how fast the client reads. It is the largest `timeoutSeconds`
/// that Kubernetes allows for a webhook.
pub const ANSWER: Duration = Duration::from_secs(30);
/// Maximum time that a connection may be idle. The API server closes its idle connections after 90 s. The server waits
/// twice as long, so that it never closes a connection on which the API server is about to send a request (C2 and C3 in
/// `docs/admission-contract.md`).
pub const IDLE: Duration = Duration::from_secs(180);
/// Maximum size of a request head, in bytes. The API server's heads stay below 2 KiB, `traceparent` and bearer token
/// included.
pub const HEAD_BYTES: usize = 32 * 1024;
/// Maximum number of bytes of a rejected body that are read and discarded, as a multiple of the body limit. So a client
/// whose body is slightly over the limit can send everything and read the response. The factor is small, so an attacker
/// gains little.
pub const DRAIN_FACTOR: usize = 4;
/// Maximum time for reading and discarding the rest of a rejected request body. It is the default timeout of a webhook
/// call in Kubernetes.
pub const DRAIN: Duration = Duration::from_secs(10);

/// The configurable limits. [`Limits::default`] uses the constants of this module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of a body in bytes. Larger bodies are answered with 413.
    pub body: usize,
    /// Maximum total size of all request bodies in memory, in bytes. A request whose body would exceed this total is
    /// answered with 429.
    pub buffered: usize,
    /// Maximum number of concurrent requests. Further requests are answered with 429.
    pub in_flight: usize,
    /// Maximum number of admission requests that are evaluated at the same time. Default: the number of processors.
    /// Requests with large bodies are counted separately, and their maximum is half of this number.
    pub deciding: usize,
    /// Capacity of the queue for decisions. If the queue is full, the oldest request in it is answered with 429.
    pub waiting: usize,
    /// Maximum time in the queue under overload. After this time, the request is answered with 429.
    pub overload_deadline: Duration,
    /// Maximum time in the queue while the server is not overloaded. After this time, the request is answered with 429.
    pub queue_deadline: Duration,
    /// Time for which all permits may be in use before a long queue counts as overload.
    pub burst: Duration,
    /// Maximum queue length at which overload never begins, in requests.
    pub burst_length: usize,
    /// Computing time after which a thread yields to the runtime.
    pub yield_after: Duration,
    /// Minimum size in bytes of a large body. The decision about a large body runs on a separate thread.
    pub large: usize,
    /// Maximum number of 429 responses per second that close their connection.
    pub closes: u32,
    /// Maximum number of open connections. A further connection is accepted only when another one closes.
    pub connections: usize,
    /// Timeout of the TLS handshake.
    pub handshake: Duration,
    /// Timeout from the first byte of a request to the end of its head. The server may notice the end of the timeout
    /// late, by up to a quarter of the timeout.
    pub head: Duration,
    /// Maximum time for receiving the body of a request, after its request line and headers have been received.
    pub body_arrival: Duration,
    /// Timeout for the client to read a response.
    pub answer: Duration,
    /// Maximum time between a response and the next request on the same connection. Outside tests, it must be more than
    /// 90 s, because the API server reuses a connection for up to 90 s.
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
            overload_deadline: OVERLOAD_DEADLINE,
            queue_deadline: QUEUE_DEADLINE,
            burst: BURST,
            burst_length: BURST_LENGTH,
            yield_after: YIELD_AFTER,
            large: LARGE,
            closes: CLOSES,
            connections: CONNECTIONS,
            handshake: HANDSHAKE,
            head: HEAD,
            body_arrival: BODY_ARRIVAL,
            answer: ANSWER,
            idle: IDLE,
        }
    }
}

/// Returns the number of processors that the process may use. Its CPU affinity and its control group (cgroup) determine
/// this number.
pub(super) fn processors() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

/// The current load of the server, such as the number of requests in flight and the size of their bodies. Requests
/// beyond a limit are rejected with HTTP 429. The API server can retry such requests.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) decisions: Arc<ConcurrencyLimiter>,
    requests: Semaphore,
    bytes: Arc<Semaphore>,
    buffer_size: usize,
    large: Arc<Semaphore>,
    large_waiting: Semaphore,
    closes: RateLimiter,
}

impl Load {
    pub(super) fn new(limits: &Limits) -> Self {
        // Large bodies use at most half of the processors; the other half remains for small ones.
        let large = (limits.deciding / 2).max(1);
        let Limits { overload_deadline, queue_deadline: deadline, burst, burst_length, .. } = *limits;
        let policy = QueuePolicy { overload_deadline, deadline, burst, burst_length, idle_credit: IDLE_CREDIT };
        Self {
            decisions: ConcurrencyLimiter::new(limits.deciding, limits.waiting, policy, limits.yield_after),
            requests: semaphore(limits.in_flight),
            bytes: Arc::new(semaphore(limits.buffered)),
            buffer_size: limits.buffered.min(Semaphore::MAX_PERMITS),
            large: Arc::new(semaphore(large)),
            large_waiting: semaphore(LARGE_WAITING),
            closes: RateLimiter::new(limits.closes),
        }
    }

    /// Counts a request against the limit of requests in flight, until the permit is dropped. Returns `None` if the
    /// limit is reached.
    pub(super) fn request(&self) -> Option<SemaphorePermit<'_>> {
        self.requests.try_acquire().ok()
    }

    /// Reserves `count` bytes of memory for a body until the permit is dropped. Returns `None` if less memory is
    /// available.
    pub(super) fn bytes(&self, count: usize) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.bytes).try_acquire_many_owned(u32::try_from(count).ok()?).ok()
    }

    /// Waits for a permit to decide a request with a large body. Returns `None` at once if too many other requests are
    /// already waiting for such a permit.
    pub(super) async fn large(&self) -> Option<OwnedSemaphorePermit> {
        let _waiting = self.large_waiting.try_acquire().ok()?;
        Arc::clone(&self.large).acquire_owned().await.ok()
    }

    /// Returns whether the server may close the connection after a 429 response. The number of connections that it
    /// closes in this way is limited per second. If the result is true, the call counts toward this limit.
    pub(super) fn may_close(&self) -> bool {
        self.closes.allows(Instant::now())
    }

    /// Returns the number of requests in the queue, and the size of all bodies in memory, in bytes.
    pub(super) fn current(&self) -> (usize, usize) {
        (self.decisions.waiting(), self.buffer_size.saturating_sub(self.bytes.available_permits()))
    }
}

/// A rate limiter that allows an event only if a minimum time has passed since the last allowed event.
#[derive(Debug)]
struct RateLimiter {
    /// Minimum time between two allowed events. `None` if the rate is 0, so no event is allowed.
    gap: Option<Duration>,
    last: Mutex<Option<Instant>>,
}

impl RateLimiter {
    fn new(per_second: u32) -> Self {
        Self { gap: Duration::from_secs(1).checked_div(per_second), last: Mutex::default() }
    }

    fn allows(&self, now: Instant) -> bool {
        let Some(gap) = self.gap else { return false };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| now.saturating_duration_since(last) >= gap);
        if is_due {
            *last = Some(now);
        }
        is_due
    }
}

/// Returns a semaphore of `count` permits, limited to the maximum that tokio supports.
pub(super) fn semaphore(count: usize) -> Semaphore {
    Semaphore::new(count.min(Semaphore::MAX_PERMITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_connection_closes_evenly() {
        let began = Instant::now();
        let closes = RateLimiter::new(10);
        let allowed = |millis| closes.allows(began + Duration::from_millis(millis));
        assert_eq!([0, 1, 99, 100, 101, 5000, 5001].map(allowed), [true, false, false, true, false, true, false]);
        assert!(!RateLimiter::new(0).allows(began));
    }
}
