//! Causes incidents while clients call the webhooks, and counts the failed calls.

use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::calls::{Callers, Failure};
use super::stage::{Certificates, TestEnvironment};
use crate::sentences::eventually;

/// Time before and after an incident during which calls are also counted, so that later effects of the incident are
/// included.
const MARGIN: Duration = Duration::from_millis(1_500);
/// Timeout for all replicas to renew their leaf certificates. In these tests, the lifetime of a leaf certificate is at
/// most 75 s. A replica renews its leaf certificate after two thirds of the lifetime.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(90);
/// Timeout for a replacement of the CA. The replacement takes about the lifetime of a leaf certificate, two overlaps of
/// the old and the new CA (`--ca-overlap`), and a few poll intervals.
const CA_CHANGE_TIMEOUT: Duration = Duration::from_secs(150);
/// Maximum time after which a client notices that a connection to a killed replica has ended, even on a busy machine.
/// The client is connected to a relay, which acts as the Service. After the replica is killed, the relay closes the
/// connection to the client.
const DISCONNECT_DELAY: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(200);
const ETCD_PAUSE: Duration = Duration::from_secs(4);

/// A fault or a change that the tests cause while clients call the webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incident {
    /// One of two replicas ends gracefully, and a new one starts.
    Restart,
    /// Every replica gets a new serving certificate. With a mounted Secret, the certificate in the Secret is replaced.
    /// With self-managed certificates, every replica issues itself a new leaf certificate.
    Rotation,
    /// The CA is replaced. The incident begins with the request for a new CA, and ends when no caBundle contains the
    /// old CA.
    CaChange,
    /// The kube-apiserver is stopped and started again.
    ApiServerRestart,
    /// The etcd process is paused for a few seconds.
    EtcdPause,
    /// One of two replicas is killed with SIGKILL, and a new one starts.
    Kill,
}

/// A replica that was killed.
struct Killed {
    address: SocketAddr,
    /// The time at which the Service stopped using the replica.
    removed_at: Instant,
}

impl Killed {
    /// Returns whether the kill of the replica explains a failed call. This is the case if the call began before the
    /// Service stopped using the replica, or if the call used a connection to the replica and the client had not
    /// noticed that this connection was closed.
    ///
    /// For a call of the direct client, the message of the failure contains the local address of the client's
    /// connection. This address identifies the replica. For a call of the API server, the replica is unknown. The kill
    /// then explains a connection error if the call began at most [`DISCONNECT_DELAY`] after the Service stopped using
    /// the replica.
    fn explains(&self, failure: &Failure, environment: &TestEnvironment) -> bool {
        let from = failure.message.rsplit_once("(from ").and_then(|(_, rest)| rest.trim_end_matches(')').parse().ok());
        match from {
            _ if failure.began <= self.removed_at => true,
            Some(from) => environment.service.replica_of(from) == Some(self.address),
            None => {
                let is_connection_error =
                    failure.message.ends_with("EOF") || failure.message.ends_with("connection reset by peer");
                is_connection_error && failure.began <= self.removed_at + DISCONNECT_DELAY
            }
        }
    }
}

/// The number of calls by one kind of client during an incident, and the failed calls among them.
pub struct Outcome {
    pub times: usize,
    pub calls: usize,
    pub failures: Vec<Failure>,
    /// The number of failed calls for which the kill of a replica is the expected reason.
    pub explained_by_kill: usize,
    pub duration: Duration,
}

impl Incident {
    /// Returns the description of the incident in the table of docs/reliability.md.
    pub fn description(self, certificates: &Certificates) -> &'static str {
        match (self, certificates) {
            (Self::Restart, _) => "graceful restart of one of two replicas",
            (Self::Rotation, Certificates::SelfManaged { .. }) => "renewal of every replica's own leaf",
            (Self::Rotation, Certificates::Mounted { .. }) => "rotation of the mounted Secret",
            (Self::CaChange, _) => "change of the CA, until the old one has left",
            (Self::ApiServerRestart, _) => "restart of the kube-apiserver",
            (Self::EtcdPause, _) => "etcd stops for 4 s",
            (Self::Kill, _) => "one of two replicas is killed (SIGKILL)",
        }
    }

    /// Causes the incident `times` times while `callers` call the webhooks. Returns the outcome for each of `callers`.
    pub fn run(self, times: usize, environment: &TestEnvironment, callers: &[&dyn Callers]) -> Vec<Outcome> {
        let before = |callers: &&dyn Callers| (callers.tally().calls(), callers.tally().failures_after(0).len());
        let before: Vec<_> = callers.iter().map(before).collect();
        let began = Instant::now();
        sleep(MARGIN);
        let killed: Vec<Killed> = (0..times).filter_map(|_| self.cause(environment)).collect();
        sleep(MARGIN);
        let duration = began.elapsed();
        let is_explained = |failure: &&Failure| killed.iter().any(|killed| killed.explains(failure, environment));
        let outcome = |(callers, (calls, failed)): (&&dyn Callers, (usize, usize))| {
            let failures = callers.tally().failures_after(failed);
            let explained_by_kill = failures.iter().filter(is_explained).count();
            Outcome { times, calls: callers.tally().calls() - calls, failures, explained_by_kill, duration }
        };
        callers.iter().zip(before).map(outcome).collect()
    }

    fn cause(self, environment: &TestEnvironment) -> Option<Killed> {
        match self {
            Self::Restart => restart(environment),
            Self::Rotation => rotate(environment),
            Self::CaChange => change_ca(environment),
            Self::ApiServerRestart => environment.cluster.restart_api_server().expect("the API server restarts"),
            Self::EtcdPause => {
                environment.cluster.set_etcd_paused(true);
                sleep(ETCD_PAUSE);
                environment.cluster.set_etcd_paused(false);
            }
            Self::Kill => return Some(kill(environment)),
        }
        None
    }
}

impl Outcome {
    /// Returns the number of failed calls for which the kill of a replica is not the expected reason.
    pub fn unexplained(&self) -> usize {
        self.failures.len() - self.explained_by_kill
    }
}

fn restart(environment: &TestEnvironment) {
    end_oldest(environment);
    environment.add_replica();
}

/// Ends the oldest replica gracefully, and removes it from the Service.
pub fn end_oldest(environment: &TestEnvironment) {
    let replica = environment.take_replica();
    replica.terminate();
    environment.service.remove(replica.address);
}

/// Kills a replica, removes it from the Service immediately, and starts a new replica. In a real cluster, the kubelet
/// needs about a second to notice that the process has ended.
fn kill(environment: &TestEnvironment) -> Killed {
    let replica = environment.take_replica();
    let address = replica.address;
    drop(replica);
    environment.service.remove(address);
    let removed_at = Instant::now();
    environment.add_replica();
    Killed { address, removed_at }
}

fn rotate(environment: &TestEnvironment) {
    match &environment.certificates {
        Certificates::Mounted { authority, mount } => {
            let before = certificate_reload_counts(environment);
            let leaf = authority.leaf();
            mount.publish(&leaf.chain, &leaf.key);
            eventually(|| {
                certificate_reload_counts(environment)
                    .iter()
                    .zip(&before)
                    .all(|(now, before)| now > before)
                    .then_some(())
            });
        }
        Certificates::SelfManaged { .. } => {
            let before = signed_leaf_counts(environment);
            let is_renewed = || signed_leaf_counts(environment).iter().zip(&before).all(|(now, before)| now > before);
            wait_until("every replica has signed another leaf", RENEWAL_TIMEOUT, is_renewed);
        }
    }
}

fn certificate_reload_counts(environment: &TestEnvironment) -> Vec<f64> {
    metrics(environment, "portcullis_certificate_reloads_total{result=\"loaded\"} ")
}

fn signed_leaf_counts(environment: &TestEnvironment) -> Vec<f64> {
    metrics(environment, "portcullis_leaves_signed_total ")
}

fn metrics(environment: &TestEnvironment, line: &str) -> Vec<f64> {
    environment.replicas.lock().unwrap().iter().map(|replica| replica.metric(line).unwrap_or_default()).collect()
}

fn change_ca(environment: &TestEnvironment) {
    let before = environment.secret("ca.crt").expect("the Secret contains a CA");
    environment.request_new_ca();
    let is_changed = || {
        let now = environment.secret("ca.crt").unwrap_or_default();
        now != before && environment.secret("old.crt").is_none() && environment.all_bundles_equal(&now)
    };
    wait_until("the CA is changed", CA_CHANGE_TIMEOUT, is_changed);
}

fn wait_until(what: &str, limit: Duration, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < limit, "timed out after {limit:?}: {what}");
        sleep(POLL_INTERVAL);
    }
}
