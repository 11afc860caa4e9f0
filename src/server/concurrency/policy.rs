//! The policy of the request queue: how long requests may wait, and when the server counts as overloaded.

use std::time::Duration;

/// The time limits of requests in the queue, and the conditions for overload.
#[derive(Debug, Clone, Copy)]
pub(in crate::server) struct QueuePolicy {
    /// Maximum time that a request waits in the queue under overload.
    pub(in crate::server) overload_deadline: Duration,
    /// Maximum time that a request waits in the queue while the server is not overloaded.
    pub(in crate::server) deadline: Duration,
    /// Maximum idle credit: the time for which all permits can be in use before a long queue counts as overload. The
    /// credit decreases while all permits are in use. While a permit is free, it increases up to this maximum.
    pub(in crate::server) burst: Duration,
    /// Maximum queue length at which overload never begins, in requests. If the queue is longer and no credit is left,
    /// overload begins.
    pub(in crate::server) burst_length: usize,
    /// Number of seconds of credit that the server earns in each second in which a permit is free. Each second in which
    /// all permits are in use costs one second of credit. A long queue counts as overload only when no credit is left.
    pub(in crate::server) idle_credit: u32,
}
