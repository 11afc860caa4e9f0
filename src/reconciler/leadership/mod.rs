//! Leader election with a Lease of `coordination.k8s.io`.
//!
//! The replica that holds the Lease renews it every retry period. Another replica takes the Lease over at once if the
//! holder has released it. Otherwise, the other replica takes it over after it has seen no change of the Lease for the
//! lease duration. It measures this time with its own clock. Every write contains the resourceVersion that was read, so
//! two replicas cannot both acquire the Lease.
//!
//! The holder steps down if no renewal succeeds within the renew deadline. This period begins when the holder sends its
//! last successful renewal, and is shorter than the lease duration.
//!
//! Source: client-go's `tools/leaderelection`, which uses the same Leases.

mod record;

use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use tokio::time::{Instant, sleep, timeout};

use record::{Seen, Standing};

/// The timing of leader election with a Lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Lease duration. Other replicas take the Lease over if it was not renewed for this time. So after a crash of the
    /// holder, there is no leader for about this time.
    pub duration: Duration,
    /// Renew deadline. The holder steps down if it could not renew the Lease for this time. The rest of the lease
    /// duration is a margin for clock drift and writes in flight.
    pub deadline: Duration,
    /// Retry period. This is the interval between renewals, and between attempts to acquire the Lease. The renew
    /// deadline must be at least two retry periods, so that one slow response does not end the leadership.
    pub retry: Duration,
}

impl Default for Timing {
    /// Returns the default timing of Kubernetes' own controllers.
    fn default() -> Self {
        Self { duration: Duration::from_secs(15), deadline: Duration::from_secs(10), retry: Duration::from_secs(2) }
    }
}

impl Timing {
    /// Checks that the periods are consistent, so that the holder steps down before another replica takes over.
    ///
    /// # Errors
    /// Returns a message about the first period that is invalid.
    pub fn check(&self) -> Result<(), String> {
        if self.duration.is_zero() || self.duration.subsec_nanos() != 0 {
            return Err("the lease duration must be whole seconds, the unit of a Lease".to_owned());
        }
        if self.deadline >= self.duration {
            return Err("the renew deadline must be shorter than the lease duration, so that two replicas never lead"
                .to_owned());
        }
        if self.retry.is_zero() || self.retry * 2 > self.deadline {
            return Err(
                "the renew deadline must be at least two retry periods, so that one slow response does not end the leadership"
                    .into(),
            );
        }
        Ok(())
    }
}

/// A candidate in a leader election, which acquires, renews and releases a Lease.
pub struct Elector {
    api: Api<Lease>,
    name: String,
    identity: String,
    timing: Timing,
    seen: Option<Seen>,
    held: Option<Held>,
}

struct Held {
    lease: Lease,
    /// The time at which the last successful renewal of the Lease was sent.
    since: Instant,
}

impl Elector {
    /// Creates a candidate for the Lease `name`. Each start of a process needs a different `identity`. Otherwise, a
    /// process could mistake the Lease of its previous run for its own.
    pub fn new(api: Api<Lease>, name: &str, identity: &str, timing: Timing) -> Self {
        Self { api, name: name.to_owned(), identity: identity.to_owned(), timing, seen: None, held: None }
    }

    /// Tries to acquire the Lease until this process holds it.
    pub async fn acquire(&mut self) {
        let mut changes = watcher::watch_object(self.api.clone(), &self.name).default_backoff().boxed();
        loop {
            match timeout(self.timing.deadline, self.attempt()).await {
                Ok(Ok(true)) => return,
                Ok(Ok(false)) => {}
                Ok(Err(error)) => tracing::warn!(%error, lease = self.name, "the lease cannot be acquired"),
                Err(_) => tracing::warn!(lease = self.name, "the API server does not answer about the lease"),
            }
            // The watch reports a released Lease at once. Without the permission to watch, the next attempt finds it.
            tokio::select! {
                () = sleep(self.timing.retry) => {}
                _ = changes.next() => {}
            }
        }
    }

    /// Renews the Lease until it is lost. If renewals fail, returns at the renew deadline, before the Lease expires and
    /// another replica can acquire it.
    pub async fn hold(&mut self) {
        while let Some(since) = self.held.as_ref().map(|held| held.since) {
            let until = since + self.timing.deadline;
            tokio::time::sleep_until(until.min(Instant::now() + self.timing.retry)).await;
            let left = until.saturating_duration_since(Instant::now());
            let is_kept = match timeout(left, self.attempt()).await {
                Ok(Ok(is_held)) => is_held,
                Ok(Err(error)) => {
                    tracing::warn!(%error, lease = self.name, "the lease was not renewed; trying again");
                    true
                }
                Err(_) => false,
            };
            if !is_kept || Instant::now() >= until && self.held.as_ref().is_none_or(|held| held.since == since) {
                self.held = None;
                tracing::error!(lease = self.name, "the lease was lost: stepping down");
            }
        }
    }

    /// Releases the Lease, so that another replica takes over at once.
    pub async fn release(&mut self) {
        let Some(Held { lease, .. }) = self.held.take() else { return };
        match timeout(self.timing.retry, self.give_back(lease)).await {
            Ok(Ok(())) => tracing::info!(lease = self.name, "the lease was released"),
            Ok(Err(error)) => tracing::warn!(%error, lease = self.name, "the lease was not released"),
            Err(_) => tracing::warn!(lease = self.name, "the lease was not released in time"),
        }
    }

    /// Writes the Lease without a holder, so that other replicas can acquire it. `lease` may be outdated because a
    /// renewal was still in flight. In this case, reads the latest Lease and releases that version.
    async fn give_back(&self, mut lease: Lease) -> Result<(), kube::Error> {
        loop {
            record::released(&mut lease, Timestamp::now());
            if or_conflict(self.api.replace(&self.name, &PostParams::default(), &lease).await)?.is_some() {
                return Ok(());
            }
            match self.api.get_opt(&self.name).await? {
                Some(latest) if record::holder(&latest) == self.identity => lease = latest,
                _ => return Ok(()),
            }
        }
    }

    /// Tries once to acquire or renew the Lease. Returns whether this process holds it.
    async fn attempt(&mut self) -> Result<bool, kube::Error> {
        let since = Instant::now();
        if let Some(Held { lease, .. }) = &self.held {
            let mut lease = lease.clone();
            record::renew(&mut lease, Timestamp::now());
            match self.api.replace(&self.name, &PostParams::default(), &lease).await {
                Ok(lease) => return Ok(self.keep(lease, since)),
                // Somebody has written the Lease, possibly this process in a request whose response was lost.
                Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => {}
                Err(error) => return Err(error),
            }
        }
        let Some(lease) = self.api.get_opt(&self.name).await? else {
            let lease = record::first(&self.name, &self.identity, self.timing.duration, Timestamp::now());
            let made = self.api.create(&PostParams::default(), &lease).await;
            return Ok(or_conflict(made)?.is_some_and(|lease| self.keep(lease, since)));
        };
        match Seen::examine(&mut self.seen, &lease, &self.identity, Instant::now()) {
            Standing::Mine if self.held.is_some() => Ok(self.keep_as_it_was(lease)),
            Standing::Others => {
                self.held = None;
                Ok(false)
            }
            Standing::Mine | Standing::Free => {
                let mut lease = lease;
                record::take(&mut lease, &self.identity, self.timing.duration, Timestamp::now());
                let taken = self.api.replace(&self.name, &PostParams::default(), &lease).await;
                Ok(or_conflict(taken)?.is_some_and(|lease| self.keep(lease, since)))
            }
        }
    }

    fn keep(&mut self, lease: Lease, since: Instant) -> bool {
        self.held = Some(Held { lease, since });
        true
    }

    /// Stores `lease`, a newer version of the Lease that this process holds. Keeps the stored time of the last renewal,
    /// because it is unknown when the newer version was written. Always returns `true`: this process still holds the
    /// Lease.
    fn keep_as_it_was(&mut self, lease: Lease) -> bool {
        if let Some(held) = &mut self.held {
            held.lease = lease;
        }
        true
    }
}

/// Returns the written Lease, or `None` if the write failed with a conflict. Other errors are returned unchanged.
fn or_conflict(written: Result<Lease, kube::Error>) -> Result<Option<Lease>, kube::Error> {
    match written {
        Ok(lease) => Ok(Some(lease)),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requires_stepping_down_before_others_take_over() {
        assert_eq!(Timing::default().check(), Ok(()));
        let seconds = Duration::from_secs;
        let timing = |duration, deadline, retry| Timing {
            duration: seconds(duration),
            deadline: seconds(deadline),
            retry: seconds(retry),
        };
        for wrong in [timing(10, 10, 2), timing(15, 10, 6), timing(15, 10, 0), timing(0, 0, 0)] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
