//! Clients that create, change and delete objects through the kube-apiserver, like kubectl. The kube-apiserver calls
//! the webhooks.
//!
//! A write counts as failed if the API server reports a failed webhook call, or rejects the object. With
//! `failurePolicy: Ignore`, the client gets no report of a failed call, so the tests also read the API server's
//! metrics. Failures of the API server itself are not counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hyper::Request;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::calls::{Callers, Tally};
use super::stage::TestEnvironment;

const WRITERS: usize = 8;
const PAUSE: Duration = Duration::from_millis(10);
/// The API server's error message for a failed webhook call. The client gets it with `failurePolicy: Fail`.
const FAILED: &str = "failed calling webhook";
/// The API server's metrics of failed webhook calls. Each entry has the name of a metric, and a text. Only series with
/// this text in their labels are counted. The first metric counts failed calls after which the request was denied, the
/// second those after which it was admitted.
const COUNTERS: [(&str, &str); 2] = [
    ("apiserver_admission_webhook_rejection_count", "error_type=\"calling_webhook_error\""),
    ("apiserver_admission_webhook_fail_open_count", "portcullis.dev"),
];

/// Clients that write objects. They run until this value is dropped.
pub struct Writers {
    tally: Arc<Tally>,
    other_errors: Arc<AtomicUsize>,
    tasks: Vec<JoinHandle<()>>,
}

impl Callers for Writers {
    fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }
}

impl Writers {
    /// Starts the clients, which write objects in a new namespace.
    pub fn start(environment: &TestEnvironment) -> Self {
        let namespace = environment.cluster.namespace("storm");
        let (tally, other_errors) = (Arc::new(Tally::default()), Arc::default());
        let tasks = environment.cluster.block_on(async {
            let writer = |at| Writer {
                contexts: api(environment, "Context", "contexts", &namespace),
                installations: api(environment, "Installation", "installations", &namespace),
                tally: Arc::clone(&tally),
                other_errors: Arc::clone(&other_errors),
                name: format!("writer-{at}"),
            };
            (0..WRITERS).map(|at| tokio::spawn(writer(at).write())).collect()
        });
        Self { tally, other_errors, tasks }
    }

    /// Returns the number of writes that failed, although no webhook call failed and no webhook rejected the object.
    /// The usual reason is that the API server is not available.
    pub fn other_errors(&self) -> usize {
        self.other_errors.load(Ordering::Relaxed)
    }
}

impl Drop for Writers {
    fn drop(&mut self) {
        self.tally.stop();
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Returns the number of failed webhook calls that the API server has counted since its start.
pub fn failed_webhook_calls(environment: &TestEnvironment) -> usize {
    let request = Request::get("/metrics").body(Vec::new()).unwrap();
    let text = environment.cluster.block_on(environment.cluster.client().request_text(request)).unwrap();
    let of = |(name, label): &(&str, &str)| {
        let lines = text.lines().filter(|line| line.starts_with(name) && line.contains(label));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() as usize).sum::<usize>()
    };
    COUNTERS.iter().map(of).sum()
}

/// Returns log records of the API server about failed webhook calls, and log records of the replicas about their CA,
/// caBundles and listeners. The records are sorted by time of day.
pub fn logged_failures_and_steps(environment: &TestEnvironment) -> Vec<String> {
    let logs = std::fs::read_dir(environment.cluster.folder()).unwrap().flatten().map(|entry| entry.path());
    let logs = logs.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
    let mut lines: Vec<String> = logs.flat_map(|log| lines_about_calls_and_steps(&log)).collect();
    lines.sort();
    lines
}

fn lines_about_calls_and_steps(log: &std::path::Path) -> Vec<String> {
    const ABOUT: [&str; 4] = ["failing open", "failing closed", "authority::keeper", "server::listener"];
    let name = log.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines = text.lines().filter(|line| ABOUT.iter().any(|about| line.contains(about)));
    lines.map(|line| format!("{} {name} {line}", time_of_day(line))).collect()
}

/// Returns the time of day in a log record. A record begins like `W1123 07:58:41.827175` (API server) or
/// `2026-11-23T07:58:41.827175Z` (Portcullis).
fn time_of_day(line: &str) -> &str {
    let from = line.find(':').map_or(0, |at| at.saturating_sub(2));
    line.get(from..from + 15).unwrap_or(line)
}

fn api(environment: &TestEnvironment, kind: &str, plural: &str, namespace: &str) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("landscaper.gardener.cloud", "v1alpha1", kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
    Api::namespaced_with(environment.cluster.client(), namespace, &resource)
}

struct Writer {
    contexts: Api<DynamicObject>,
    installations: Api<DynamicObject>,
    tally: Arc<Tally>,
    other_errors: Arc<AtomicUsize>,
    name: String,
}

impl Writer {
    async fn write(self) {
        let spec = json!({"blueprint": {"ref": {"resourceName": "b"}}, "componentDescriptor": {"ref": {
            "componentName": "example.org/c", "version": "v1.0.0",
            "repositoryContext": {"type": "ociRegistry", "baseUrl": "example.org"}}}});
        let context = self.object("Context", json!({}));
        let installation = self.object("Installation", json!({"spec": spec}));
        while !self.tally.is_stopped() {
            for (api, object) in [(&self.contexts, &context), (&self.installations, &installation)] {
                self.write_once(api, object).await;
            }
        }
    }

    fn object(&self, kind: &str, more: serde_json::Value) -> DynamicObject {
        let mut object = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": kind,
                                "metadata": {"name": self.name}});
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(object).unwrap()
    }

    async fn write_once(&self, api: &Api<DynamicObject>, object: &DynamicObject) {
        let label = Patch::Merge(json!({"metadata": {"labels": {"storm": "yes"}}}));
        let began = Instant::now();
        self.count(began, api.create(&PostParams::default(), object).await);
        let began = Instant::now();
        self.count(began, api.patch(&self.name, &PatchParams::default(), &label).await);
        let began = Instant::now();
        self.count(began, api.delete(&self.name, &DeleteParams::default()).await);
        sleep(PAUSE).await;
    }

    /// Counts the result of a write. The statuses 404 and 409 do not count as failures. They occur if the response to
    /// an earlier write was lost: the object to delete no longer exists, or the object to create already exists.
    fn count<T>(&self, began: Instant, result: Result<T, kube::Error>) {
        match result {
            Ok(_) => self.tally.count(began, Ok(())),
            Err(kube::Error::Api(status)) if status.message.contains(FAILED) => {
                self.tally.count(began, Err(status.message.clone()));
            }
            Err(kube::Error::Api(status)) if [403, 404, 409, 422].contains(&status.code) => {
                let is_after_lost_answer = status.code != 403 && status.code != 422;
                self.tally.count(began, if is_after_lost_answer { Ok(()) } else { Err(status.message.clone()) });
            }
            Err(_) => drop(self.other_errors.fetch_add(1, Ordering::Relaxed)),
        }
    }
}
