//! Leadership: of several replicas one acts, by a Lease of `coordination.k8s.io`.
//!
//! Whoever holds the Lease renews it every retry period. Others take it over when it has not changed for its duration,
//! by their own clocks, or at once when it was given back. Every write names the resourceVersion that was read, so two
//! cannot both take it. The holder counts from before its last renewal that succeeded, and steps down at the renew
//! deadline, which is shorter than the duration: before anybody else can have it.
//!
//! Source: client-go's `tools/leaderelection`, whose Leases these are.

mod record;

use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use tokio::time::{Instant, sleep, timeout};

use record::{Seen, Standing};

/// How long a Lease holds, and how often it is renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Others take the Lease over when it was not renewed for so long. The longest time that nobody acts.
    pub duration: Duration,
    /// The holder steps down when it could not renew for so long. What is left of the duration covers clocks that run
    /// at different rates, and writes that are on their way.
    pub deadline: Duration,
    /// Between two renewals, and between two attempts to take over. Several must fit into the deadline, so that one
    /// slow answer ends nothing.
    pub retry: Duration,
}

impl Default for Timing {
    /// Those of Kubernetes' own controllers.
    fn default() -> Self {
        Self { duration: Duration::from_secs(15), deadline: Duration::from_secs(10), retry: Duration::from_secs(2) }
    }
}

impl Timing {
    /// Checks that the holder steps down before others take over.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    pub fn check(&self) -> Result<(), String> {
        if self.duration.is_zero() || self.duration.subsec_nanos() != 0 {
            return Err("the lease duration must be whole seconds, for so a Lease holds it".to_owned());
        }
        if self.deadline >= self.duration {
            return Err("the renew deadline must be shorter than the lease duration: two could act else".to_owned());
        }
        if self.retry.is_zero() || self.retry * 2 > self.deadline {
            return Err("two retry periods must fit into the renew deadline: one slow answer would end the term".into());
        }
        Ok(())
    }
}

/// A candidate for a Lease.
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
    /// From before the request that renewed it.
    since: Instant,
}

impl Elector {
    /// A candidate for the Lease `name`, known as `identity`: another one after each start of a process.
    pub fn new(api: Api<Lease>, name: &str, identity: &str, timing: Timing) -> Self {
        Self { api, name: name.to_owned(), identity: identity.to_owned(), timing, seen: None, held: None }
    }

    /// Waits until the Lease is held.
    pub async fn acquire(&mut self) {
        let mut changes = watcher::watch_object(self.api.clone(), &self.name).default_backoff().boxed();
        loop {
            match timeout(self.timing.deadline, self.attempt()).await {
                Ok(Ok(true)) => return,
                Ok(Ok(false)) => {}
                Ok(Err(error)) => tracing::warn!(%error, lease = self.name, "the lease cannot be had"),
                Err(_) => tracing::warn!(lease = self.name, "the API server does not answer about the lease"),
            }
            // A Lease that was given back is seen at once; without the right to watch, at the next attempt.
            tokio::select! {
                () = sleep(self.timing.retry) => {}
                _ = changes.next() => {}
            }
        }
    }

    /// Keeps the Lease for as long as it can be kept; by its end nobody else can have it yet.
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
                tracing::error!(lease = self.name, "the lease is lost: stepping down");
            }
        }
    }

    /// Gives the Lease back, so that another takes over at once.
    pub async fn release(&mut self) {
        let Some(Held { mut lease, .. }) = self.held.take() else { return };
        record::give_back(&mut lease, Timestamp::now());
        let released = timeout(self.timing.retry, self.api.replace(&self.name, &PostParams::default(), &lease)).await;
        match released {
            Ok(Ok(_)) => tracing::info!(lease = self.name, "the lease is given back"),
            Ok(Err(error)) => tracing::warn!(%error, lease = self.name, "the lease was not given back"),
            Err(_) => tracing::warn!(lease = self.name, "the lease was not given back in time"),
        }
    }

    /// Whether the Lease is held after one attempt to take or to renew it.
    async fn attempt(&mut self) -> Result<bool, kube::Error> {
        let since = Instant::now();
        if let Some(Held { lease, .. }) = &self.held {
            let mut lease = lease.clone();
            record::renew(&mut lease, Timestamp::now());
            match self.api.replace(&self.name, &PostParams::default(), &lease).await {
                Ok(lease) => return Ok(self.keep(lease, since)),
                // Somebody wrote it: perhaps we did, and the answer was lost.
                Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => {}
                Err(error) => return Err(error),
            }
        }
        let Some(lease) = self.api.get_opt(&self.name).await? else {
            let lease = record::first(&self.name, &self.identity, self.timing.duration, Timestamp::now());
            let made = self.api.create(&PostParams::default(), &lease).await;
            return Ok(or_lost(made)?.is_some_and(|lease| self.keep(lease, since)));
        };
        match Seen::look(&mut self.seen, &lease, &self.identity, Instant::now()) {
            Standing::Mine if self.held.is_some() => Ok(self.keep_as_it_was(lease)),
            Standing::Others => {
                self.held = None;
                Ok(false)
            }
            Standing::Mine | Standing::Free => {
                let mut lease = lease;
                record::take(&mut lease, &self.identity, self.timing.duration, Timestamp::now());
                let taken = self.api.replace(&self.name, &PostParams::default(), &lease).await;
                Ok(or_lost(taken)?.is_some_and(|lease| self.keep(lease, since)))
            }
        }
    }

    fn keep(&mut self, lease: Lease, since: Instant) -> bool {
        self.held = Some(Held { lease, since });
        true
    }

    /// Ours, but it is not known since when: the next renewal goes from here, and no time is won.
    fn keep_as_it_was(&mut self, lease: Lease) -> bool {
        if let Some(held) = &mut self.held {
            held.lease = lease;
        }
        true
    }
}

/// A write that another was faster with is no error.
fn or_lost(written: Result<Lease, kube::Error>) -> Result<Option<Lease>, kube::Error> {
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
    fn the_holder_steps_down_before_others_take_over() {
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
