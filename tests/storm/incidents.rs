//! What happens while calls are made, and what it cost.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::calls::{Callers, Failure};
use super::stage::{Certificates, Stage};
use crate::sentences::eventually;

/// Calls go on for so long before and after, so that what an incident leaves behind is counted as its own.
const AROUND: Duration = Duration::from_millis(1_500);
const ETCD_PAUSE: Duration = Duration::from_secs(4);

/// Something that happens, so many times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incident {
    /// One of two replicas ends gracefully, and another one starts.
    Restart,
    /// Another leaf is in the mounted Secret, or every replica signs itself another one.
    Rotation,
    /// Another CA signs, from asking for it until the old one has left the bundles.
    CaChange,
    /// The kube-apiserver ends and starts again.
    ApiServerRestart,
    /// etcd stands still.
    EtcdPause,
    /// A replica is killed.
    Kill,
}

/// What an incident cost.
pub struct Outcome {
    pub times: usize,
    pub calls: usize,
    pub failures: Vec<Failure>,
    /// Of the failures those that began before the Service had left out the killed replica.
    pub on_the_killed: usize,
    pub took: Duration,
}

impl Incident {
    /// The words of the table.
    pub fn words(self, certificates: &Certificates) -> &'static str {
        match (self, certificates) {
            (Self::Restart, _) => "graceful restart of one of two replicas",
            (Self::Rotation, Certificates::SelfManaged) => "renewal of every replica's own leaf",
            (Self::Rotation, Certificates::Mounted { .. }) => "rotation of the mounted Secret",
            (Self::CaChange, _) => "change of the CA, until the old one has left",
            (Self::ApiServerRestart, _) => "restart of the kube-apiserver",
            (Self::EtcdPause, _) => "etcd stands still for 4 s",
            (Self::Kill, _) => "one of two replicas is killed (SIGKILL)",
        }
    }

    /// Has it happen so many times under calls, and counts.
    pub fn pass(self, times: usize, stage: &Stage, callers: &[&dyn Callers]) -> Vec<Outcome> {
        let before = |callers: &&dyn Callers| (callers.tally().calls(), callers.tally().failures_after(0).len());
        let before: Vec<_> = callers.iter().map(before).collect();
        let began = Instant::now();
        sleep(AROUND);
        let mut left_out = None;
        for _ in 0..times {
            left_out = self.happen(stage).or(left_out);
        }
        sleep(AROUND);
        let took = began.elapsed();
        let is_excused = |failure: &&Failure| left_out.is_some_and(|left_out| failure.began <= left_out);
        let outcome = |(callers, (calls, failed)): (&&dyn Callers, (usize, usize))| {
            let failures = callers.tally().failures_after(failed);
            let on_the_killed = failures.iter().filter(is_excused).count();
            Outcome { times, calls: callers.tally().calls() - calls, failures, on_the_killed, took }
        };
        callers.iter().zip(before).map(outcome).collect()
    }

    /// For a kill: when the Service had left the replica out.
    fn happen(self, stage: &Stage) -> Option<Instant> {
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
    /// Failures that nothing excuses.
    pub fn unexcused(&self) -> usize {
        self.failures.len() - self.on_the_killed
    }
}

fn restart(stage: &Stage) {
    let replica = stage.take_replica();
    replica.terminate();
    stage.service.remove(replica.address);
    stage.add_replica();
}

/// Killed first and left out then, at once: the kubelet takes a second or so to notice.
fn kill(stage: &Stage) -> Instant {
    let replica = stage.take_replica();
    let address = replica.address;
    drop(replica);
    stage.service.remove(address);
    let left_out = Instant::now();
    stage.add_replica();
    left_out
}

fn rotate(stage: &Stage) {
    match &stage.certificates {
        Certificates::Mounted { authority, mount } => {
            let before = loaded(stage);
            let leaf = authority.leaf();
            mount.publish(&leaf.chain, &leaf.key);
            eventually(|| loaded(stage).iter().zip(&before).all(|(now, before)| now > before).then_some(()));
        }
        Certificates::SelfManaged => {
            let before = signed(stage);
            eventually(|| signed(stage).iter().zip(&before).all(|(now, before)| now > before).then_some(()));
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
        let now = stage.secret("ca.crt")?;
        (now != before && stage.secret("old.crt").is_none() && stage.bundles_are(&now)).then_some(())
    };
    // An overlap, and the life of a leaf and another overlap, and some looks.
    let start = Instant::now();
    while is_changed().is_none() {
        assert!(start.elapsed() < Duration::from_secs(60), "the CA is not changed");
        sleep(Duration::from_millis(200));
    }
}
