//! Counts calls of a client that behaves like the API server: it uses the stored caBundle, keeps 25 idle connections,
//! and never repeats a call.

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

use super::stage::Stage;
use crate::support::client::{self, Pool};
use crate::support::harness::{review, review_of};

/// Calls at a time, more than are pooled, so that connections are made and thrown away all along.
const WORKERS: usize = 30;
/// Less than the lame-duck period: the server closes a connection that was idle all that time, and a call may begin at
/// that moment. HTTP/1.1 has no solution.
const CLIENT_IDLE: Duration = Duration::from_secs(2);
/// How late this API server hears of a changed bundle; a real one is faster.
const BUNDLE_LAG: Duration = Duration::from_millis(500);

/// A call that failed.
#[derive(Debug, Clone)]
pub struct Failure {
    pub began: Instant,
    pub what: String,
}

/// What has been called so far.
#[derive(Default)]
pub struct Tally {
    calls: AtomicUsize,
    failures: Mutex<Vec<Failure>>,
    over: AtomicBool,
}

impl Tally {
    pub fn count(&self, began: Instant, result: Result<(), String>) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if let Err(what) = result {
            self.failures.lock().unwrap().push(Failure { began, what });
        }
    }

    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// Returns the failures since the first so many.
    pub fn failures_after(&self, count: usize) -> Vec<Failure> {
        self.failures.lock().unwrap()[count..].to_vec()
    }

    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// Somebody who calls without a pause.
pub trait Callers {
    fn tally(&self) -> &Arc<Tally>;
}

/// A client that behaves as the API server's does.
pub struct Direct {
    tally: Arc<Tally>,
    tasks: Vec<JoinHandle<()>>,
}

impl Callers for Direct {
    fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }
}

impl Direct {
    /// Begins to call.
    pub fn start(stage: &Stage) -> Self {
        let tally = Arc::new(Tally::default());
        let bundle = || stage.bundles("validatingwebhookconfiguration", "portcullis").remove(0);
        let pool = Arc::new(ArcSwap::from_pointee(pool(stage.service.address, &bundle())));
        let tasks = stage.cluster.block_on(async {
            let follow = tokio::spawn(follow(stage.cluster.client(), stage.service.address, Arc::clone(&pool)));
            let worker = |at| tokio::spawn(call(at, Arc::clone(&pool), Arc::clone(&tally)));
            std::iter::once(follow).chain((0..WORKERS).map(worker)).collect()
        });
        Self { tally, tasks }
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        self.tally.end();
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

fn pool(address: SocketAddr, bundle: &str) -> Pool {
    let roots: Vec<_> = CertificateDer::pem_slice_iter(bundle.as_bytes()).map(Result::unwrap).collect();
    Pool::new(address, client::config_of(&roots, &[&TLS13, &TLS12]), CLIENT_IDLE)
}

/// Has another pool whenever the stored bundle is another one, as the API server makes another client then.
async fn follow(cluster: kube::Client, address: SocketAddr, current: Arc<ArcSwap<Pool>>) {
    use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration as Configuration;
    let api: kube::Api<Configuration> = kube::Api::all(cluster);
    let mut known = None;
    loop {
        // Without the API server the bundle that is known holds.
        if let Ok(configuration) = api.get("portcullis").await {
            let webhook = configuration.webhooks.into_iter().flatten().next();
            let bundle = webhook.and_then(|webhook| webhook.client_config.ca_bundle).map(|bytes| bytes.0);
            if bundle != known {
                let text = String::from_utf8(bundle.clone().unwrap_or_default()).unwrap();
                current.store(Arc::new(pool(address, &text)));
                known = bundle;
            }
        }
        sleep(BUNDLE_LAG).await;
    }
}

/// Calls until it is over, with pauses of different lengths so that some connections are idle for a while.
async fn call(worker: usize, pool: Arc<ArcSwap<Pool>>, tally: Arc<Tally>) {
    let (small, large) = (review("storm"), review_of("widgets", "storm", 300_000));
    let mut calls = 0;
    while !tally.is_over() {
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
