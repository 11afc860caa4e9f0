//! The deadlines of the queue, and when a queue counts as overload.

use std::time::Duration;

/// How long requests wait for their first permit, and when a queue counts as overload.
#[derive(Debug, Clone, Copy)]
pub(in crate::server) struct QueuePolicy {
    /// In overload: how long the oldest request may wait before the queue becomes LIFO.
    pub(in crate::server) fifo_for: Duration,
    /// Maximum waiting time in overload.
    pub(in crate::server) overload_deadline: Duration,
    /// Maximum waiting time otherwise.
    pub(in crate::server) deadline: Duration,
    /// The longest burst: the idle credit when it is full.
    pub(in crate::server) burst: Duration,
    /// Queue length up to which there is never overload.
    pub(in crate::server) burst_length: usize,
    /// Credit earned per unit of idle time.
    pub(in crate::server) idle_credit: u32,
}
