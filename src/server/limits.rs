//! Every bound of the server, each with the reason for its size.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

const MIB: usize = 1024 * 1024;

/// The API server takes objects up to 3 MiB, an UPDATE carries two of them, and the envelope gets the last MiB (C15).
pub const BODY: usize = 7 * MIB;
/// Nine of the largest bodies or ten thousand usual ones at once; parsed, that stays below half a GiB.
pub const BUFFERED: usize = 64 * MIB;
/// Three API servers with 25 pooled connections each, and a burst of six times that; beyond it waiting helps nobody.
pub const IN_FLIGHT: usize = 512;
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
            connections: CONNECTIONS,
            handshake: HANDSHAKE,
            head: HEAD,
            body_arrival: BODY_ARRIVAL,
            answer: ANSWER,
            idle: IDLE,
        }
    }
}

/// What may still be taken on. There is no queue: what does not fit is sent away at once (C4).
#[derive(Debug)]
pub(super) struct Load {
    requests: Semaphore,
    bytes: Semaphore,
}

impl Load {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { requests: semaphore(limits.in_flight), bytes: semaphore(limits.buffered) }
    }

    /// A place among the requests in flight, until it is dropped.
    pub(super) fn request(&self) -> Option<SemaphorePermit<'_>> {
        self.requests.try_acquire().ok()
    }

    /// Room for `count` bytes, until it is dropped.
    pub(super) fn bytes(&self, count: usize) -> Option<SemaphorePermit<'_>> {
        self.bytes.try_acquire_many(u32::try_from(count).ok()?).ok()
    }
}

/// A semaphore of `count` permits, or as many as there can be.
pub(super) fn semaphore(count: usize) -> Semaphore {
    Semaphore::new(count.min(Semaphore::MAX_PERMITS))
}
