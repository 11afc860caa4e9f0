//! Taking the steps, for as long as the process runs: looks, signs its own leaf where one is due, takes one step, and
//! looks again when something changed or the time has come.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use time::OffsetDateTime;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::clock::{Clock, Reading};
use super::cluster::{Cluster, ClusterError, Configuration, Stored};
use super::issue::{self, Leaf};
use super::metrics::Metrics;
use super::state::State;
use super::steps::{self, Bundle, Seen, Step, Timing};
use crate::process::Condition;

/// Between two looks: somebody who changes our objects all the time is not followed at any speed.
const SETTLE: Duration = Duration::from_millis(100);
/// After a failure. The API server may be restarting, which takes seconds.
const AGAIN: Duration = Duration::from_secs(1);
/// Replicas that write at the same time are through after a few rounds; more than that is told.
const MANY_CONFLICTS: usize = 5;

/// What a keeper works with.
pub struct Settings {
    /// The cluster.
    pub client: Client,
    /// Where the Secret is.
    pub namespace: String,
    /// Its name.
    pub secret: String,
    /// What leaves are made out to: DNS names, or addresses.
    pub names: Vec<String>,
    /// How long things last.
    pub timing: Timing,
    /// Where the time comes from.
    pub clock: Clock,
    /// Where is counted.
    pub metrics: Metrics,
    /// Met once calls to this replica are trusted.
    pub condition: Condition,
    /// Is given every leaf, to serve it from then on.
    pub serve: Box<dyn Fn(&Leaf) + Send + Sync>,
}

/// Why a look failed.
#[derive(Debug, thiserror::Error)]
enum KeeperError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error("a certificate cannot be made: {0}")]
    Make(#[from] rcgen::Error),
}

/// Keeps one replica's leaf, and with the other replicas the CA.
pub struct Keeper {
    settings: Settings,
    cluster: Cluster,
    leaf: Option<Leaf>,
    /// The state that was read last, and since when it is that by the steady clock.
    known: Option<(State, Duration)>,
    problems: Vec<String>,
    failure: Option<String>,
    conflicts: usize,
    is_ready: bool,
}

/// What one look saw.
struct Look {
    configurations: Vec<Configuration>,
    bundles: Vec<Bundle>,
    stored: Stored,
    reading: Reading,
}

impl Keeper {
    /// A keeper that has not looked yet.
    pub fn new(settings: Settings) -> Self {
        let cluster = Cluster::new(&settings.client, &settings.namespace, &settings.secret);
        let (problems, conflicts, is_ready) = (Vec::new(), 0, false);
        Self { settings, cluster, leaf: None, known: None, problems, failure: None, conflicts, is_ready }
    }

    /// Keeps them for ever.
    pub async fn run(mut self) {
        let bell = Arc::new(Notify::new());
        let cluster = self.cluster.clone();
        let rings = cluster.ring(Arc::clone(&bell));
        let keeps = async {
            loop {
                let rest = self.turn().await;
                // Rung or not, the next is a look; a bell that rang in between is not lost.
                let _ = timeout(rest, bell.notified()).await;
                sleep(SETTLE).await;
            }
        };
        futures::join!(rings, keeps);
    }

    /// One look and one step; how long to rest after it.
    async fn turn(&mut self) -> Duration {
        match self.step().await {
            Ok(rest) => {
                (self.failure, self.conflicts) = (None, 0);
                rest
            }
            Err(KeeperError::Cluster(ClusterError::Changed(what))) if self.conflicts < MANY_CONFLICTS => {
                self.conflicts += 1;
                tracing::debug!(what, "somebody else was faster: reading again");
                Duration::ZERO
            }
            Err(error) => {
                self.fail(error.to_string());
                AGAIN
            }
        }
    }

    /// Counts every failure, and tells of one once.
    fn fail(&mut self, error: String) {
        self.settings.metrics.failed();
        if !self.is_ready {
            self.settings.condition.unmet(error.clone());
        }
        if self.failure.as_ref() != Some(&error) {
            tracing::error!(%error, "the CA is not looked after; the leaf that is served stays. Trying again");
            self.failure = Some(error);
        }
    }

    async fn step(&mut self) -> Result<Duration, KeeperError> {
        let look = self.look().await?;
        self.sign(&look)?;
        self.tell(&look);
        let seen = Seen {
            state: &look.stored.state,
            bundles: &look.bundles,
            now: look.reading.wall,
            unchanged: self.unchanged(&look),
            asked: look.stored.asked,
        };
        let step = steps::next(&seen, &self.settings.timing);
        self.take(&step, &look).await?;
        Ok(match step {
            Step::Rest(rest) => self.rest(rest, look.reading.wall),
            _ => Duration::ZERO,
        })
    }

    /// Bundles before the Secret: see [`steps`].
    async fn look(&self) -> Result<Look, ClusterError> {
        let configurations = self.cluster.configurations().await?;
        let stored = self.cluster.stored().await?;
        let bundles = configurations.iter().flat_map(Configuration::bundles).collect();
        Ok(Look { configurations, bundles, stored, reading: self.settings.clock.read() })
    }

    /// Signs a leaf where one is due, from the CA that was read just now.
    fn sign(&mut self, look: &Look) -> Result<(), KeeperError> {
        let now = look.reading.wall;
        let has_good_leaf = self.leaf.as_ref().is_some_and(|leaf| leaf.certificate.holds(now));
        // Calls to a replica whose leaf has expired fail, whatever it serves next: it is ready again once that is trusted.
        self.is_ready &= has_good_leaf;
        let Some(signer) = look.stored.state.signer(has_good_leaf) else { return Ok(()) };
        if self.leaf.as_ref().is_some_and(|leaf| !leaf.is_due(&signer.certificate, now)) {
            return Ok(());
        }
        let leaf = issue::leaf(signer, &self.settings.names, now, self.settings.timing.leaf)?;
        (self.settings.serve)(&leaf);
        self.settings.metrics.signed();
        let expires = leaf.certificate.expires();
        tracing::info!(%expires, ca_expires = %signer.certificate.expires(), "a new leaf is signed and served");
        self.leaf = Some(leaf);
        Ok(())
    }

    fn tell(&mut self, look: &Look) {
        if self.problems != look.stored.problems {
            self.problems.clone_from(&look.stored.problems);
            let secret = self.cluster.secret_name();
            for problem in &self.problems {
                tracing::warn!(secret, problem, "a part of the Secret cannot be used, and is replaced");
            }
        }
        let state = &look.stored.state;
        let expires = state.current.as_ref().map(|current| current.certificate.expires().unix_timestamp());
        self.settings.metrics.ca_expires(expires.unwrap_or_default());
        // Once ready it stays so: a bundle that somebody empties fails the calls to every replica alike.
        if self.is_ready {
            return;
        }
        match steps::unready(state, &look.bundles, look.reading.wall) {
            None => {
                self.is_ready = true;
                self.settings.condition.met();
            }
            Some(reason) => self.settings.condition.unmet(format!("{}: {reason}", self.cluster.secret_name())),
        }
    }

    /// For how long the state is known to be what was read.
    fn unchanged(&mut self, look: &Look) -> time::Duration {
        let steady = look.reading.steady;
        let since = match &self.known {
            Some((state, since)) if *state == look.stored.state => *since,
            _ => steady,
        };
        self.known = Some((look.stored.state.clone(), since));
        steady.saturating_sub(since).try_into().unwrap_or(time::Duration::MAX)
    }

    async fn take(&self, step: &Step, look: &Look) -> Result<(), KeeperError> {
        let (state, now, timing) = (&look.stored.state, look.reading.wall, &self.settings.timing);
        let after = match step {
            Step::Rest(_) => return Ok(()),
            Step::Publish(wanted) => {
                for configuration in &look.configurations {
                    let count = self.cluster.publish(configuration, wanted).await?;
                    self.settings.metrics.published(count);
                }
                tracing::info!(certificates = wanted.len(), "the caBundles of our webhooks are put right");
                return Ok(());
            }
            Step::Prepare => state.prepared(issue::authority(now, timing.authority)?),
            _ => state.after(step, now),
        };
        self.cluster.write(&look.stored, &after, *step == Step::Prepare).await?;
        self.settings.metrics.took(step);
        tracing::info!(secret = self.cluster.secret_name(), step = step.sentence(), "the CA's next step");
        Ok(())
    }

    /// Until something is due.
    fn rest(&self, rest: time::Duration, now: OffsetDateTime) -> Duration {
        let leaf = self.leaf.as_ref().map_or(rest, |leaf| leaf.certificate.due() - now);
        rest.min(leaf).try_into().unwrap_or_default()
    }
}
