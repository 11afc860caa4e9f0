//! The deadlines of the queue, and the conditions under which a queue counts as overload.

use std::time::Duration;

/// The time limits of requests in the queue, and the conditions for overload.
#[derive(Debug, Clone, Copy)]
pub(in crate::server) struct QueuePolicy {
    /// Maximum time in the queue under overload.
    pub(in crate::server) overload_deadline: Duration,
    /// Maximum time in the queue without overload.
    pub(in crate::server) deadline: Duration,
    /// Maximum duration of a burst. This is also the maximum idle credit.
    pub(in crate::server) burst: Duration,
    /// Maximum queue length that never counts as overload.
    pub(in crate::server) burst_length: usize,
    /// Idle credit that a second of idle time earns, in seconds.
    pub(in crate::server) idle_credit: u32,
}
