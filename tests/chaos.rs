//! Calls without a pause while certificates rotate and replicas are replaced: not one may fail.
//!
//! The client behaves as the API server's does: HTTP/1.1, up to 25 idle connections of which it closes the old ones
//! itself, `Connection: close` honoured, and no call ever sent twice. It reaches the replicas through one address, where
//! a relay in this process stands for the Service; see [`support::service::Service`] for what it does and does not do.
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

/// The storm's length.
const STORM: Duration = Duration::from_secs(12);
/// Calls at a time, more than are pooled, so that connections are made and thrown away all along.
const WORKERS: usize = 30;
/// Shorter than in production, but long enough for the Service to learn of it on a machine that is busy.
const LAME_DUCK: Duration = Duration::from_secs(3);
/// Less than the lame-duck period. The server closes a connection that was idle all that time, and a call may begin at
/// that moment. HTTP/1.1 has no solution, so this test excludes that case.
const CLIENT_IDLE: Duration = Duration::from_secs(2);
const ROTATIONS: Duration = Duration::from_millis(250);

/// What one worker has seen.
#[derive(Default)]
struct Seen {
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
    let over = Arc::new(AtomicBool::new(false));
    let config = client::config(&authority.root, &[&TLS13, &TLS12]);
    let pool = Arc::new(Pool::new(service.address, config, CLIENT_IDLE));
    let workers: Vec<_> = (0..WORKERS).map(|at| tokio::spawn(call(at, Arc::clone(&pool), Arc::clone(&over)))).collect();
    let rotations = tokio::spawn(rotate(authority, Arc::clone(&mount), Arc::clone(&over)));

    let began = Instant::now();
    let (mut decided, mut replicas) = (Vec::new(), 1);
    while began.elapsed() < STORM {
        let next = Replica::start(&service, &mount).await;
        decided.push(replica.stop(&service).await);
        replica = next;
        replicas += 1;
    }
    over.store(true, Ordering::Relaxed);
    let seen = gather(workers).await;
    decided.push(replica.stop(&service).await);

    println!(
        "{} calls, {} failed; {replicas} replicas decided {decided:?}; {} rotations, {} leaves seen",
        seen.calls,
        seen.failures.len(),
        rotations.await.unwrap(),
        seen.leaves.len(),
    );
    assert!(seen.failures.is_empty(), "{:#?}", seen.failures);
    assert!(replicas >= 3 && decided.iter().all(|count| *count > 0), "each replica has worked");
    assert!(seen.leaves.len() >= 3, "rotations have been seen");
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

    /// Stops the replica gracefully; how many requests it has decided.
    async fn stop(self, service: &Service) -> usize {
        let address = self.running.address();
        self.running.shutdown().begin();
        let drained = self.running.finished().await.unwrap();
        assert_eq!(drained.cut_off, 0);
        service.remove(address);
        self.stub.begun.load(Ordering::SeqCst)
    }
}

/// Calls until it is over, with pauses of different lengths so that some connections are idle for a while.
async fn call(worker: usize, pool: Arc<Pool>, over: Arc<AtomicBool>) -> Seen {
    let mut seen = Seen::default();
    let (small, large) = (review("denied"), review_of("widgets", "denied", 300_000));
    while !over.load(Ordering::Relaxed) {
        let body = if seen.calls % 20 == worker { &large } else { &small };
        let path = if worker.is_multiple_of(2) { "/validate?timeout=10s" } else { "/mutate?timeout=10s" };
        match pool.post(path, body).await {
            Ok((reply, leaf)) if reply.status == 200 && reply.json()["response"]["uid"] == "uid-of-denied" => {
                seen.leaves.insert(leaf);
            }
            Ok((reply, _)) => seen.failures.push(format!("{reply:?}")),
            Err(error) => seen.failures.push(error.to_string()),
        }
        seen.calls += 1;
        sleep(Duration::from_millis((worker % 10 * worker) as u64)).await;
    }
    seen
}

/// Rotates the certificate by link swap; how many times.
async fn rotate(authority: Arc<Authority>, mount: Arc<SecretMount>, over: Arc<AtomicBool>) -> usize {
    let mut rotations = 0;
    while !over.load(Ordering::Relaxed) {
        let leaf = authority.leaf();
        mount.publish(&leaf.chain, &leaf.key);
        rotations += 1;
        sleep(ROTATIONS).await;
    }
    rotations
}

async fn gather(workers: Vec<JoinHandle<Seen>>) -> Seen {
    let mut all = Seen::default();
    for worker in workers {
        let seen = worker.await.unwrap();
        all.calls += seen.calls;
        all.failures.extend(seen.failures);
        all.leaves.extend(seen.leaves);
    }
    all
}
