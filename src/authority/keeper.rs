//! A control loop that maintains the CA of the webhook server's certificates. Each iteration reads the Secret of the CA
//! and the caBundles of the webhook configurations. If necessary, it renews the leaf certificate of this replica. Then
//! it takes the next step of a CA rotation, such as writing a new CA into the caBundles. The next iteration starts when
//! the Secret or a webhook configuration changes, or when the next step is due.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use time::OffsetDateTime;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::certificate::Certificate;
use super::clock::{Clock, Reading};
use super::cluster::{Cluster, ClusterError, Configuration, Stored};
use super::issue::{self, Leaf};
use super::metrics::Metrics;
use super::provided;
use super::state::State;
use super::steps::{self, Bundle, Seen, Step, Timing};
use crate::process::Condition;

/// Shortest interval between two iterations of the control loop, however often the Secret and the caBundles change.
const SETTLE: Duration = Duration::from_millis(100);
/// Pause of the control loop after a failed iteration. A typical cause is a restart of the API server, which takes
/// seconds.
const RETRY: Duration = Duration::from_secs(1);
/// Number of consecutive write conflicts that are retried without logging an error. Conflicts between replicas end
/// after a few retries.
const MANY_CONFLICTS: usize = 5;

/// The settings of a [`Keeper`], the control loop that renews the CA and the leaf certificate of a replica. They
/// include the Secret of the CA and the lifetimes of certificates.
pub struct Settings {
    /// The Kubernetes client.
    pub client: Client,
    /// The namespace of the Secret of the CA.
    pub namespace: String,
    /// The name of the Secret of the CA.
    pub secret: String,
    /// How the serving certificate of this replica is issued.
    pub source: Source,
    /// The lifetimes of certificates, and the overlap of CAs in a rotation.
    pub timing: Timing,
    /// The wall clock and the monotonic clock.
    pub clock: Clock,
    /// The metrics that the control loop updates, such as the expiry time of the CA.
    pub metrics: Metrics,
    /// The readiness condition. It is met when clients trust the certificate of this replica.
    pub condition: Condition,
}

/// How the serving certificate of a replica is issued.
pub enum Source {
    /// The replica signs its own leaf certificate with the CA in the Secret.
    SelfManaged {
        /// The names in leaf certificates: DNS names or IP addresses.
        names: Vec<String>,
        /// Callback that receives every new leaf certificate. The server then serves this certificate.
        serve: Box<dyn Fn(&Leaf) + Send + Sync>,
    },
    /// The certificate is issued elsewhere, for example by cert-manager, and mounted into the pod.
    Provided {
        /// Path of the PEM file with the CA certificates. The API server needs them to verify the serving certificate
        /// of this replica.
        authority: PathBuf,
    },
}

/// The reason why an iteration of the control loop failed.
#[derive(Debug, thiserror::Error)]
enum KeeperError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error("cannot create a certificate: {0}")]
    Make(#[from] rcgen::Error),
    #[error("{path}: {problem}")]
    Provided { path: String, problem: String },
}

/// A control loop that renews the leaf certificate of one replica and, together with the other replicas, the CA.
pub struct Keeper {
    settings: Settings,
    cluster: Cluster,
    leaf: Option<Leaf>,
    /// The state of the CA that was read last, and the monotonic time at which this state was first read.
    known: Option<(State, Duration)>,
    /// The last known state of the CA Secret in which the signing CA was present. If the Secret later loses the signing
    /// CA, the control loop can restore it from this state.
    remembered: Option<State>,
    problems: Vec<String>,
    failure: Option<String>,
    conflicts: usize,
    is_ready: bool,
}

/// The webhook configurations, the Secret of the CA and the time, as read in one iteration of the control loop.
struct Observation {
    configurations: Vec<Configuration>,
    bundles: Vec<Bundle>,
    stored: Stored,
    reading: Reading,
}

impl Keeper {
    /// Creates the control loop that renews the CA and the leaf certificate of this replica. The loop starts when
    /// [`Keeper::run`] is called.
    pub fn new(settings: Settings) -> Self {
        let cluster = Cluster::new(&settings.client, &settings.namespace, &settings.secret);
        let (problems, conflicts, is_ready) = (Vec::new(), 0, false);
        Self {
            settings,
            cluster,
            leaf: None,
            known: None,
            remembered: None,
            problems,
            failure: None,
            conflicts,
            is_ready,
        }
    }

    /// Runs the control loop. Never returns.
    pub async fn run(mut self) {
        let changed = Arc::new(Notify::new());
        let cluster = self.cluster.clone();
        let watches = cluster.watch(Arc::clone(&changed));
        let control = async {
            loop {
                let rest = self.iterate().await;
                // `Notify` stores a notification that arrives between two calls, so none is lost.
                let _ = timeout(rest, changed.notified()).await;
                sleep(SETTLE).await;
            }
        };
        futures::join!(watches, control);
    }

    /// Runs one iteration of the control loop, and returns the time until the next one.
    async fn iterate(&mut self) -> Duration {
        match self.step().await {
            Ok(rest) => {
                (self.failure, self.conflicts) = (None, 0);
                rest
            }
            Err(KeeperError::Cluster(ClusterError::Changed(what))) if self.conflicts < MANY_CONFLICTS => {
                self.conflicts += 1;
                tracing::debug!(what, "another client wrote first; reading again");
                Duration::ZERO
            }
            Err(error) => {
                self.fail(error.to_string());
                RETRY
            }
        }
    }

    /// Counts a failed iteration of the control loop. Logs the error if it differs from the previous error.
    fn fail(&mut self, error: String) {
        self.settings.metrics.failed();
        if !self.is_ready {
            self.settings.condition.unmet(error.clone());
        }
        if self.failure.as_ref() != Some(&error) {
            tracing::error!(%error, "cannot maintain the CA; retrying, and serving the current certificate");
            self.failure = Some(error);
        }
    }

    async fn step(&mut self) -> Result<Duration, KeeperError> {
        let provided = self.provided()?;
        let observed = self.observe().await?;
        self.renew_leaf(&observed)?;
        let unchanged = self.unchanged(&observed);
        let seen = Seen {
            state: &observed.stored.state,
            bundles: &observed.bundles,
            remembered: self.remembered.as_ref(),
            now: observed.reading.wall,
            unchanged,
            rotation_requested: observed.stored.rotation_requested,
        };
        let timing = &self.settings.timing;
        let (step, unready) = match &provided {
            None => (steps::next(&seen, timing), steps::unready(&seen, timing)),
            Some(authorities) => {
                (provided::next(&seen, authorities, timing), provided::unready(&seen, authorities, timing))
            }
        };
        self.report(&observed, unready);
        self.take(&step, &observed).await?;
        Ok(match step {
            Step::Rest(rest) => self.rest(rest, observed.reading.wall),
            _ => Duration::ZERO,
        })
    }

    /// Returns the CAs of the serving certificate if it is issued outside Portcullis, for example by cert-manager.
    /// Reads them from a mounted PEM file. Returns `None` if this replica signs its own leaf certificate.
    fn provided(&self) -> Result<Option<Vec<Certificate>>, KeeperError> {
        let Source::Provided { authority } = &self.settings.source else { return Ok(None) };
        let problem = |problem: String| KeeperError::Provided { path: authority.display().to_string(), problem };
        let text = std::fs::read(authority).map_err(|error| problem(error.to_string()))?;
        let authorities = Certificate::read_all(&text).map_err(|error| problem(error.to_string()))?;
        if authorities.is_empty() {
            return Err(problem("contains no CA certificate in PEM".to_owned()));
        }
        Ok(Some(authorities))
    }

    /// Reads the webhook configurations, and then the Secret of the CA. The documentation of [`steps`] explains the
    /// order.
    async fn observe(&self) -> Result<Observation, ClusterError> {
        let configurations = self.cluster.configurations().await?;
        let stored = self.cluster.stored().await?;
        let bundles = configurations.iter().flat_map(Configuration::bundles).collect();
        Ok(Observation { configurations, bundles, stored, reading: self.settings.clock.read() })
    }

    /// Signs a new leaf certificate with the CA in `observed`, and serves it. Does nothing if the current leaf
    /// certificate is not due for renewal. Does nothing if this replica serves a certificate that was issued outside
    /// Portcullis.
    fn renew_leaf(&mut self, observed: &Observation) -> Result<(), KeeperError> {
        let Source::SelfManaged { names, serve } = &self.settings.source else { return Ok(()) };
        let now = observed.reading.wall;
        let has_good_leaf = self.leaf.as_ref().is_some_and(|leaf| leaf.certificate.is_valid(now));
        // After the leaf has expired, the replica is not ready until its next leaf is trusted.
        self.is_ready &= has_good_leaf;
        let Some(signer) = observed.stored.state.signer(has_good_leaf) else { return Ok(()) };
        if self.leaf.as_ref().is_some_and(|leaf| !leaf.is_due(&signer.certificate, now)) {
            return Ok(());
        }
        let leaf = issue::leaf(signer, names, now, self.settings.timing.leaf)?;
        serve(&leaf);
        self.settings.metrics.signed();
        let expires = leaf.certificate.expires();
        tracing::info!(%expires, ca_expires = %signer.certificate.expires(), "serving a new certificate");
        self.leaf = Some(leaf);
        Ok(())
    }

    fn report(&mut self, observed: &Observation, unready: Option<String>) {
        if self.problems != observed.stored.problems {
            self.problems.clone_from(&observed.stored.problems);
            let secret = self.cluster.secret_name();
            for problem in &self.problems {
                tracing::warn!(secret, problem, "replacing an invalid part of the Secret");
            }
        }
        let state = &observed.stored.state;
        let expires = state.current.as_ref().map(|current| current.certificate.expires().unix_timestamp());
        self.settings.metrics.ca_expires(expires.unwrap_or_default());
        // A ready replica stays ready if a caBundle loses the CA, because this affects all replicas in the same way.
        if self.is_ready {
            return;
        }
        match unready {
            None => {
                self.is_ready = true;
                self.settings.condition.met();
            }
            Some(reason) => self.settings.condition.unmet(format!("{}: {reason}", self.cluster.secret_name())),
        }
    }

    /// Remembers the observed state of the CA, and returns for how long the state has not changed. Ignores changes of
    /// [`State::used`], the times at which replicas reported which CA they use.
    fn unchanged(&mut self, observed: &Observation) -> time::Duration {
        let steady = observed.reading.steady;
        let since = match &self.known {
            Some((state, since)) if state.trusts_the_same(&observed.stored.state) => *since,
            _ => steady,
        };
        self.known = Some((observed.stored.state.clone(), since));
        if observed.stored.state.current.is_some() {
            self.remembered = Some(observed.stored.state.clone());
        }
        steady.saturating_sub(since).try_into().unwrap_or(time::Duration::MAX)
    }

    async fn take(&self, step: &Step, observed: &Observation) -> Result<(), KeeperError> {
        let (state, now, timing) = (&observed.stored.state, observed.reading.wall, &self.settings.timing);
        let after = match step {
            Step::Rest(_) => return Ok(()),
            Step::Publish(wanted) => {
                for configuration in &observed.configurations {
                    let count = self.cluster.publish(configuration, wanted).await?;
                    self.settings.metrics.published(count);
                }
                tracing::info!(certificates = wanted.len(), "corrected the caBundles of our webhooks");
                return Ok(());
            }
            Step::Prepare => state.prepared(issue::authority(now, timing.authority)?),
            _ => state.after(step, now),
        };
        self.cluster.write(&observed.stored, &after, *step == Step::Prepare).await?;
        self.settings.metrics.took(step);
        tracing::info!(secret = self.cluster.secret_name(), step = step.sentence(), "CA rotation step");
        Ok(())
    }

    /// Returns how long the control loop waits before its next iteration. This is `rest`, or less if the leaf
    /// certificate must be renewed earlier.
    fn rest(&self, rest: time::Duration, now: OffsetDateTime) -> Duration {
        let leaf = self.leaf.as_ref().map_or(rest, |leaf| leaf.certificate.due() - now);
        rest.min(leaf).try_into().unwrap_or_default()
    }
}
