//! Checks that no call fails while certificates are rotated and replicas are replaced.
//!
//! The client behaves like the API server: it uses HTTP/1.1, keeps up to 25 idle connections and closes old ones,
//! respects `Connection: close`, and never repeats a call. It reaches the replicas through one address. At this
//! address, a relay in this process acts as the Service; [`support::service::Service`] describes the differences from a
//! real Service.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]
#![allow(clippy::print_stdout, reason = "the counts are the result")]

mod support;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use portcullis::server::{Readiness, Running};
use rustls::pki_types::CertificateDer;
use rustls::version::{TLS12, TLS13};
use support::client::{self, Pool};
use support::harness::{Stub, eventually, review, review_of, start};
use support::pki::{Authority, SecretMount};
use support::service::Service;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Duration of the test. Clients call the webhooks during this time.
const TEST_DURATION: Duration = Duration::from_secs(12);
/// Number of concurrent calls. The pool keeps at most 25 idle connections, so the client opens and closes connections
/// all the time.
const WORKERS: usize = 30;
/// The lame-duck period of the replicas. It is shorter than in production, but long enough for the relay that acts as
/// the Service to notice that a replica is not ready, even on a busy machine.
const LAME_DUCK: Duration = Duration::from_secs(3);
/// Time after which the client closes an idle connection. It is shorter than the lame-duck period. At the end of the
/// lame-duck period, the server closes connections that were idle for the whole period. If the client started a call at
/// that moment, the call would fail. HTTP/1.1 cannot prevent this, so the test excludes the case.
const CLIENT_IDLE: Duration = Duration::from_secs(2);
const ROTATION_INTERVAL: Duration = Duration::from_millis(250);

/// The number of calls of one worker, its failed calls, and the leaf certificates of the replicas that it called.
#[derive(Default)]
struct CallResults {
    calls: usize,
    failures: Vec<String>,
    leaves: HashSet<CertificateDer<'static>>,
}

struct Replica {
    running: Running,
    stub: Arc<Stub>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_fails_while_certificates_rotate_and_replicas_are_replaced() {
    let authority = Arc::new(Authority::new());
    let mount = Arc::new(SecretMount::new(&authority.leaf()));
    let service = Service::start().await;
    let mut replica = Replica::start(&service, &mount).await;
    let is_stopped = Arc::new(AtomicBool::new(false));
    let config = client::config(&authority.root, &[&TLS13, &TLS12]);
    let pool = Arc::new(Pool::new(service.address, config, CLIENT_IDLE));
    let workers: Vec<_> =
        (0..WORKERS).map(|at| tokio::spawn(call(at, Arc::clone(&pool), Arc::clone(&is_stopped)))).collect();
    let rotations = tokio::spawn(rotate(authority, Arc::clone(&mount), Arc::clone(&is_stopped)));

    let began = Instant::now();
    let (mut decided_requests, mut replicas) = (Vec::new(), 1);
    while began.elapsed() < TEST_DURATION {
        let next = Replica::start(&service, &mount).await;
        decided_requests.push(replica.stop(&service).await);
        replica = next;
        replicas += 1;
    }
    is_stopped.store(true, Ordering::Relaxed);
    let results = collect_results(workers).await;
    decided_requests.push(replica.stop(&service).await);

    println!(
        "{} calls, {} failed; {replicas} replicas decided {decided_requests:?}; {} rotations, {} leaves seen",
        results.calls,
        results.failures.len(),
        rotations.await.unwrap(),
        results.leaves.len(),
    );
    assert!(results.failures.is_empty(), "{:#?}", results.failures);
    assert!(
        replicas >= 3 && decided_requests.iter().all(|count| *count > 0),
        "each replica must have decided requests"
    );
    assert!(results.leaves.len() >= 3, "clients must have received rotated certificates");
}

impl Replica {
    /// Starts a replica, and waits until the Service sends connections to it.
    async fn start(service: &Service, mount: &SecretMount) -> Self {
        let stub = Arc::new(Stub::new());
        let running = start(mount, &stub, &Readiness::default(), |options| options.lame_duck = LAME_DUCK).await;
        service.add(running.address(), running.admin_address());
        eventually("the replica is ready", async || service.is_ready(running.address())).await;
        Self { running, stub }
    }

    /// Stops the replica gracefully, and returns the number of requests that it has decided.
    async fn stop(self, service: &Service) -> usize {
        let address = self.running.address();
        self.running.shutdown().begin();
        let drained = self.running.finished().await.unwrap();
        assert_eq!(drained.cut_off, 0);
        service.remove(address);
        self.stub.begun.load(Ordering::SeqCst)
    }
}

/// Calls a webhook path until `is_stopped` is true, and returns the results. The pause between calls depends on the
/// worker, so that some connections are idle for a while.
async fn call(worker: usize, pool: Arc<Pool>, is_stopped: Arc<AtomicBool>) -> CallResults {
    let mut results = CallResults::default();
    let (small, large) = (review("denied"), review_of("widgets", "denied", 300_000));
    while !is_stopped.load(Ordering::Relaxed) {
        let body = if results.calls % 20 == worker { &large } else { &small };
        let path = if worker.is_multiple_of(2) { "/validate?timeout=10s" } else { "/mutate?timeout=10s" };
        match pool.post(path, body).await {
            Ok((reply, leaf)) if reply.status == 200 && reply.json()["response"]["uid"] == "uid-of-denied" => {
                results.leaves.insert(leaf);
            }
            Ok((reply, _)) => results.failures.push(format!("{reply:?}")),
            Err(error) => results.failures.push(error.to_string()),
        }
        results.calls += 1;
        sleep(Duration::from_millis((worker % 10 * worker) as u64)).await;
    }
    results
}

/// Replaces the certificate in the mounted Secret until `is_stopped` is true. Swaps a symbolic link, as the kubelet
/// does. Returns the number of rotations.
async fn rotate(authority: Arc<Authority>, mount: Arc<SecretMount>, is_stopped: Arc<AtomicBool>) -> usize {
    let mut rotations = 0;
    while !is_stopped.load(Ordering::Relaxed) {
        let leaf = authority.leaf();
        mount.publish(&leaf.chain, &leaf.key);
        rotations += 1;
        sleep(ROTATION_INTERVAL).await;
    }
    rotations
}

async fn collect_results(workers: Vec<JoinHandle<CallResults>>) -> CallResults {
    let mut all = CallResults::default();
    for worker in workers {
        let results = worker.await.unwrap();
        all.calls += results.calls;
        all.failures.extend(results.failures);
        all.leaves.extend(results.leaves);
    }
    all
}
