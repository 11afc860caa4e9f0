//! The idle credit, a token bucket that distinguishes a short burst of requests from overload. The server earns credit
//! while it has free capacity, and spends credit while it is fully busy. A long queue counts as overload only if no
//! credit is left.

use std::time::{Duration, Instant};

use super::QueuePolicy;

/// A token bucket that distinguishes bursts from overload. Idle time fills the bucket, and busy time drains it.
#[derive(Debug)]
pub(super) struct IdleCredit {
    pub(super) left: Duration,
    pub(super) updated: Instant,
    /// Whether the server is overloaded. Overload begins when the queue is long and no idle credit is left. The server
    /// earns this credit while it has free capacity, and spends it while it is fully busy. Overload ends when the
    /// credit is full again.
    pub(super) is_overload: bool,
}

impl IdleCredit {
    pub(super) fn full(policy: QueuePolicy, now: Instant) -> Self {
        Self { left: policy.burst, updated: now, is_overload: false }
    }

    /// Adds credit for the time since the last update. Each second adds `policy.idle_credit` seconds of credit, up to
    /// `policy.burst` in total. Credit is the time for which all permits may be in use before a long queue counts as
    /// overload. Call this function only if at least one permit was free during the whole time since the last update.
    pub(super) fn earn(&mut self, now: Instant, policy: QueuePolicy) {
        let earned = now.saturating_duration_since(self.updated).saturating_mul(policy.idle_credit);
        let left = self.left.saturating_add(earned).min(policy.burst);
        *self = Self { left, updated: now, is_overload: self.is_overload && left < policy.burst };
    }

    /// Subtracts the time since the last update from the credit. All permits must have been in use during this time. At
    /// most `policy.overload_deadline` is subtracted, because a longer time means that this process was not scheduled.
    /// Overload begins if no credit is left and `waiting`, the number of queued requests, is more than
    /// `policy.burst_length`.
    pub(super) fn spend(&mut self, now: Instant, waiting: usize, policy: QueuePolicy) {
        // A longer time means that this process itself was not scheduled.
        let spent = now.saturating_duration_since(self.updated).min(policy.overload_deadline);
        let left = self.left.saturating_sub(spent);
        let is_overload = left.is_zero() && waiting > policy.burst_length;
        *self = Self { left, updated: now, is_overload: self.is_overload || is_overload };
    }
}
