//! Causes incidents while clients call the webhooks, and counts the failed calls.

use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::calls::{Callers, Failure};
use super::stage::{Certificates, Stage};
use crate::sentences::eventually;

/// Time before and after an incident during which calls are also counted, so that later effects of the incident are
/// included.
const AROUND: Duration = Duration::from_millis(1_500);
/// Timeout for all replicas to renew their leaf certificates. A replica renews its leaf certificate after two thirds of
/// the lifetime, which is at most 75 s in these tests.
const RENEWAL: Duration = Duration::from_secs(90);
/// Timeout for a replacement of the CA. It takes the lifetime of a leaf certificate, two overlaps, and some polls.
const CA_CHANGE: Duration = Duration::from_secs(150);
/// Time in which the relay passes the end of a connection to the client, even on a busy machine.
const NOTICED: Duration = Duration::from_secs(1);
const LOOKS: Duration = Duration::from_millis(200);
const ETCD_PAUSE: Duration = Duration::from_secs(4);

/// A fault or a change that the tests cause while clients call the webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incident {
    /// One of two replicas ends gracefully, and a new one starts.
    Restart,
    /// The certificate in the mounted Secret is replaced, or every replica issues itself a new leaf certificate.
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
    /// The time at which the Service no longer used the replica.
    left_out: Instant,
}

impl Killed {
    /// Returns whether the kill of the replica explains a failed call. This is the case if the call began before the
    /// Service stopped using the replica, or if it used a connection to the replica whose end the client had not
    /// noticed.
    ///
    /// For a call of the direct client, the failure contains the client's address of the connection, which identifies
    /// the replica. For a call of the API server, the replica is unknown. But the Service sends new connections to the
    /// other replica, so a broken connection must be an older one.
    fn excuses(&self, failure: &Failure, stage: &Stage) -> bool {
        let from = failure.what.rsplit_once("(from ").and_then(|(_, rest)| rest.trim_end_matches(')').parse().ok());
        match from {
            _ if failure.began <= self.left_out => true,
            Some(from) => stage.service.replica_of(from) == Some(self.address),
            None => {
                let broke_off = failure.what.ends_with("EOF") || failure.what.ends_with("connection reset by peer");
                broke_off && failure.began <= self.left_out + NOTICED
            }
        }
    }
}

/// The number of calls of one kind of client during an incident, and its failed calls.
pub struct Outcome {
    pub times: usize,
    pub calls: usize,
    pub failures: Vec<Failure>,
    /// The number of failed calls that the kill of a replica explains.
    pub on_the_killed: usize,
    pub took: Duration,
}

impl Incident {
    /// Returns the description of the incident in the table of docs/reliability.md.
    pub fn words(self, certificates: &Certificates) -> &'static str {
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
    pub fn pass(self, times: usize, stage: &Stage, callers: &[&dyn Callers]) -> Vec<Outcome> {
        let before = |callers: &&dyn Callers| (callers.tally().calls(), callers.tally().failures_after(0).len());
        let before: Vec<_> = callers.iter().map(before).collect();
        let began = Instant::now();
        sleep(AROUND);
        let killed: Vec<Killed> = (0..times).filter_map(|_| self.happen(stage)).collect();
        sleep(AROUND);
        let took = began.elapsed();
        let is_excused = |failure: &&Failure| killed.iter().any(|killed| killed.excuses(failure, stage));
        let outcome = |(callers, (calls, failed)): (&&dyn Callers, (usize, usize))| {
            let failures = callers.tally().failures_after(failed);
            let on_the_killed = failures.iter().filter(is_excused).count();
            Outcome { times, calls: callers.tally().calls() - calls, failures, on_the_killed, took }
        };
        callers.iter().zip(before).map(outcome).collect()
    }

    fn happen(self, stage: &Stage) -> Option<Killed> {
        match self {
            Self::Restart => restart(stage),
            Self::Rotation => rotate(stage),
            Self::CaChange => change_ca(stage),
            Self::ApiServerRestart => stage.cluster.restart_api_server().expect("it starts again"),
            Self::EtcdPause => {
                stage.cluster.pause_etcd(true);
                sleep(ETCD_PAUSE);
                stage.cluster.pause_etcd(false);
            }
            Self::Kill => return Some(kill(stage)),
        }
        None
    }
}

impl Outcome {
    /// Returns the number of failed calls that the kill of a replica does not explain.
    pub fn unexcused(&self) -> usize {
        self.failures.len() - self.on_the_killed
    }
}

fn restart(stage: &Stage) {
    end_oldest(stage);
    stage.add_replica();
}

/// Ends the oldest replica gracefully, and removes it from the Service.
pub fn end_oldest(stage: &Stage) {
    let replica = stage.take_replica();
    replica.terminate();
    stage.service.remove(replica.address);
}

/// Kills a replica, and removes it from the Service immediately afterwards. In a real cluster, the kubelet needs about
/// a second to notice. Then starts a new replica.
fn kill(stage: &Stage) -> Killed {
    let replica = stage.take_replica();
    let address = replica.address;
    drop(replica);
    stage.service.remove(address);
    let left_out = Instant::now();
    stage.add_replica();
    Killed { address, left_out }
}

fn rotate(stage: &Stage) {
    match &stage.certificates {
        Certificates::Mounted { authority, mount } => {
            let before = loaded(stage);
            let leaf = authority.leaf();
            mount.publish(&leaf.chain, &leaf.key);
            eventually(|| loaded(stage).iter().zip(&before).all(|(now, before)| now > before).then_some(()));
        }
        Certificates::SelfManaged { .. } => {
            let before = signed(stage);
            let is_renewed = || signed(stage).iter().zip(&before).all(|(now, before)| now > before);
            until("every replica has signed another leaf", RENEWAL, is_renewed);
        }
    }
}

fn loaded(stage: &Stage) -> Vec<f64> {
    metrics(stage, "portcullis_certificate_reloads_total{result=\"loaded\"} ")
}

fn signed(stage: &Stage) -> Vec<f64> {
    metrics(stage, "portcullis_leaves_signed_total ")
}

fn metrics(stage: &Stage, line: &str) -> Vec<f64> {
    stage.replicas.lock().unwrap().iter().map(|replica| replica.metric(line).unwrap_or_default()).collect()
}

fn change_ca(stage: &Stage) {
    let before = stage.secret("ca.crt").expect("there is a CA");
    stage.ask_for_another_ca();
    let is_changed = || {
        let now = stage.secret("ca.crt").unwrap_or_default();
        now != before && stage.secret("old.crt").is_none() && stage.bundles_are(&now)
    };
    until("the CA is changed", CA_CHANGE, is_changed);
}

fn until(what: &str, limit: Duration, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < limit, "not within {limit:?}: {what}");
        sleep(LOOKS);
    }
}
