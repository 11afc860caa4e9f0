//! Two streams of writes through the API server. The first stream writes objects that a webhook with
//! `failurePolicy: Fail` checks. The second stream writes objects that a webhook with `failurePolicy: Ignore` checks.
//!
//! Each stream alternates between a correct object and an object that a rule denies. All writes are dry runs, so the
//! API server stores nothing. If the API server admits an object that a rule denies, Portcullis has not checked the
//! object. With `failurePolicy: Ignore`, this is the only sign of a failed call.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::node::Node;

/// Pause between two writes of a stream. The resulting rate is about that of the controllers of a small team.
const PAUSE: Duration = Duration::from_millis(25);
/// Maximum number of error messages that a stream keeps for the report.
const SHOWN: usize = 10;

/// The number of writes of one stream, by outcome.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// Number of writes that the API server answered.
    pub writes: usize,
    /// Number of writes that failed, but not because of a rule. For example, a webhook did not answer.
    pub failed: usize,
    /// Number of writes that the API server admitted although a rule denies the object.
    pub unchecked: usize,
    /// Number of writes that the API server did not answer, or that it rejected because it was not ready.
    pub without_api_server: usize,
    /// The error messages of the first failed writes.
    pub shown: Vec<String>,
}

/// The `failurePolicy` of the webhook that checks the objects of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The `failurePolicy` of the webhook `validate`.
    Fail,
    /// The `failurePolicy` of the webhook `trees`.
    Ignore,
}

/// The two streams of writes, which run in the background. [`Streams::stop`] ends them.
pub struct Streams {
    tallies: [Arc<Tally>; 2],
    tasks: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Tally {
    counts: Mutex<Counts>,
    attempted: AtomicUsize,
    is_stopped: AtomicBool,
}

struct Stream {
    api: Api<DynamicObject>,
    right: DynamicObject,
    wrong: DynamicObject,
    tally: Arc<Tally>,
}

impl Streams {
    /// Starts both streams on a runtime.
    pub fn start(node: &Node, runtime: &Runtime) -> Self {
        let client = runtime.block_on(client(node));
        let tallies: [Arc<Tally>; 2] = Default::default();
        let stream = |(policy, tally): (&Policy, &Arc<Tally>)| policy.stream(client.clone(), Arc::clone(tally));
        let streams = [Policy::Fail, Policy::Ignore];
        let tasks = streams.iter().zip(&tallies).map(stream).map(|stream| runtime.spawn(stream.write())).collect();
        Self { tallies, tasks }
    }

    /// Waits until each stream has made `writes` more writes, or until `limit` has passed.
    pub fn wait_for(&self, writes: usize, limit: Duration) {
        let goals: Vec<_> = self.tallies.iter().map(|tally| tally.attempted.load(Ordering::Relaxed) + writes).collect();
        let start = Instant::now();
        let is_below_goal = |(tally, goal): (&Arc<Tally>, &usize)| tally.attempted.load(Ordering::Relaxed) < *goal;
        while self.tallies.iter().zip(&goals).any(is_below_goal) && start.elapsed() < limit {
            std::thread::sleep(PAUSE);
        }
    }

    /// Stops both streams, and returns their counts. Waits for the writes in flight.
    pub fn stop(self, runtime: &Runtime) -> [Counts; 2] {
        self.tallies.iter().for_each(|tally| tally.is_stopped.store(true, Ordering::Relaxed));
        // An aborted write would count as neither failed nor answered.
        runtime.block_on(futures::future::join_all(self.tasks));
        self.tallies.map(|tally| tally.counts.lock().unwrap().clone())
    }
}

impl Policy {
    fn stream(self, client: Client, tally: Arc<Tally>) -> Stream {
        let (group, version, kind, plural) = match self {
            Self::Fail => ("landscaper.gardener.cloud", "v1alpha1", "DryRunConfiguration", "dryrunconfigurations"),
            Self::Ignore => ("", "v1", "ConfigMap", "configmaps"),
        };
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
        let api = Api::namespaced_with(client, "default", &resource);
        let [right, wrong] = [false, true].map(|is_wrong| serde_json::from_value(self.object(is_wrong)).unwrap());
        Stream { api, right, wrong, tally }
    }

    /// Returns an object for the requests of this stream. If `is_wrong` is true, a rule denies the object: DR003 in the
    /// stream `Fail`, and KZ001 in the stream `Ignore`.
    fn object(self, is_wrong: bool) -> Value {
        let name = if is_wrong { "wrong" } else { "right" };
        match self {
            Self::Fail => {
                let fragment = |name: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "a"}});
                let second = if is_wrong { "one" } else { "two" };
                json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DryRunConfiguration",
                       "metadata": {"name": name}, "spec": {"exports": [fragment("one"), fragment(second)]}})
            }
            Self::Ignore => {
                let list = if is_wrong { "resources: [ldap]\n" } else { "components: [ldap]\n" };
                json!({"apiVersion": "v1", "kind": "ConfigMap",
                       "metadata": {"name": name, "labels": {"portcullis.dev/kustomize-tree": "kubectl"}},
                       "data": {"kustomization.yaml": list, "ldap__kustomization.yaml":
                                "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: ldap-\n"}})
            }
        }
    }
}

impl Stream {
    async fn write(self) {
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        while !self.tally.is_stopped.load(Ordering::Relaxed) {
            for (object, is_wrong) in [(&self.right, false), (&self.wrong, true)] {
                let result = self.api.create(&dry_run, object).await.map(drop);
                self.tally.counts.lock().unwrap().count(&result, is_wrong);
                self.tally.attempted.fetch_add(1, Ordering::Relaxed);
                sleep(PAUSE).await;
            }
        }
    }
}

impl Counts {
    fn count(&mut self, result: &Result<(), kube::Error>, is_wrong: bool) {
        match result {
            Ok(()) if is_wrong => self.unchecked += 1,
            Ok(()) => {}
            Err(kube::Error::Api(status))
                if is_wrong && status.message.contains(".portcullis.dev\" denied the request") => {}
            Err(kube::Error::Api(status)) if status.message.contains("not yet ready to handle request") => {
                self.without_api_server += 1;
                return;
            }
            Err(kube::Error::Api(status)) => {
                self.failed += 1;
                self.show(status.message.clone());
            }
            Err(_) => {
                self.without_api_server += 1;
                return;
            }
        }
        self.writes += 1;
    }

    fn show(&mut self, message: String) {
        if self.shown.len() < SHOWN {
            self.shown.push(message);
        }
    }
}

async fn client(node: &Node) -> Client {
    // Fails if a provider is already installed, which is not a problem.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(node.kubeconfig()).expect("the node has written it");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("the kubeconfig is complete")).expect("the client can be created")
}
