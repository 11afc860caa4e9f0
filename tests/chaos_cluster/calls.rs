//! A client that calls the replicas directly, and counts its calls. It behaves like the API server: it uses the stored
//! caBundle, keeps up to 25 idle connections, and never repeats a call.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::version::{TLS12, TLS13};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::stage::TestEnvironment;
use crate::support::client::{self, Pool};
use crate::support::harness::{review, review_of};

/// Number of concurrent calls. The pool keeps at most 25 idle connections, so the client opens and closes connections
/// all the time.
const WORKERS: usize = 30;
/// Time after which the client closes an idle connection. It is shorter than the lame-duck period. At the end of the
/// lame-duck period, the server closes connections that were idle for the whole period. If the client started a call at
/// that moment, the call would fail, and HTTP/1.1 cannot prevent this.
const CLIENT_IDLE: Duration = Duration::from_secs(2);
/// Interval at which the test client reads the caBundle of the webhook configuration. So the client notices a changed
/// caBundle only after a delay. A real API server notices the change sooner.
const BUNDLE_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// A failed call.
#[derive(Debug, Clone)]
pub struct Failure {
    pub began: Instant,
    pub message: String,
}

/// The number of calls of a client, and its failed calls.
#[derive(Default)]
pub struct Tally {
    calls: AtomicUsize,
    failures: Mutex<Vec<Failure>>,
    is_stopped: AtomicBool,
}

impl Tally {
    pub fn count(&self, began: Instant, result: Result<(), String>) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if let Err(message) = result {
            self.failures.lock().unwrap().push(Failure { began, message });
        }
    }

    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// Returns all failed calls except the first `count` ones.
    pub fn failures_after(&self, count: usize) -> Vec<Failure> {
        self.failures.lock().unwrap()[count..].to_vec()
    }

    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}

/// A client, or several clients, that call the webhooks continuously.
pub trait Callers {
    fn tally(&self) -> &Arc<Tally>;
}

/// A running client that calls the webhooks in the same way as the API server does. It stops when it is dropped.
pub struct DirectClient {
    tally: Arc<Tally>,
    tasks: Vec<JoinHandle<()>>,
}

impl Callers for DirectClient {
    fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }
}

impl DirectClient {
    /// Starts the client.
    pub fn start(environment: &TestEnvironment) -> Self {
        let tally = Arc::new(Tally::default());
        let bundle = || environment.bundles("validatingwebhookconfiguration", "portcullis").remove(0);
        let pool = Arc::new(ArcSwap::from_pointee(pool(environment.service.address, &bundle())));
        let tasks = environment.cluster.block_on(async {
            let update_pool =
                tokio::spawn(update_pool(environment.cluster.client(), environment.service.address, Arc::clone(&pool)));
            let worker = |at| tokio::spawn(run_worker(at, Arc::clone(&pool), Arc::clone(&tally)));
            std::iter::once(update_pool).chain((0..WORKERS).map(worker)).collect()
        });
        Self { tally, tasks }
    }
}

impl Drop for DirectClient {
    fn drop(&mut self) {
        self.tally.stop();
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

fn pool(address: SocketAddr, bundle: &str) -> Pool {
    let roots: Vec<_> = CertificateDer::pem_slice_iter(bundle.as_bytes()).map(Result::unwrap).collect();
    Pool::new(address, client::config_with_roots(&roots, &[&TLS13, &TLS12]), CLIENT_IDLE)
}

/// Replaces the connection pool when the stored caBundle changes. The API server does the same: for a changed caBundle,
/// it creates a new client.
async fn update_pool(cluster: kube::Client, address: SocketAddr, current: Arc<ArcSwap<Pool>>) {
    use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration as Configuration;
    let api: kube::Api<Configuration> = kube::Api::all(cluster);
    let mut known = None;
    loop {
        // If the API server does not answer, the client continues to use the last caBundle.
        if let Ok(configuration) = api.get("portcullis").await {
            let webhook = configuration.webhooks.into_iter().flatten().next();
            let bundle = webhook.and_then(|webhook| webhook.client_config.ca_bundle).map(|bytes| bytes.0);
            if bundle != known {
                let text = String::from_utf8(bundle.clone().unwrap_or_default()).unwrap();
                current.store(Arc::new(pool(address, &text)));
                known = bundle;
            }
        }
        sleep(BUNDLE_POLL_INTERVAL).await;
    }
}

/// Calls a webhook path repeatedly, and records the results in `tally`, until the test signals the end through `tally`.
/// The pause between calls depends on the worker, so that some connections are idle for a while.
async fn run_worker(worker: usize, pool: Arc<ArcSwap<Pool>>, tally: Arc<Tally>) {
    let (small, large) = (review("storm"), review_of("widgets", "storm", 300_000));
    let mut calls = 0;
    while !tally.is_stopped() {
        let body = if calls % 20 == worker { &large } else { &small };
        let path = if worker.is_multiple_of(2) { "/validate?timeout=10s" } else { "/mutate?timeout=10s" };
        let began = Instant::now();
        let result = match pool.load_full().post(path, body).await {
            Ok((reply, _)) if reply.status == 200 && reply.json()["response"]["uid"] == "uid-of-storm" => Ok(()),
            Ok((reply, _)) => Err(format!("{reply:?}")),
            Err(error) => Err(error.to_string()),
        };
        tally.count(began, result);
        calls += 1;
        sleep(Duration::from_millis(5 + (worker % 10 * worker) as u64)).await;
    }
}
