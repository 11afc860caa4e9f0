//! Measures the controller manager with a real API server: `portcullis reconcile --overwrite-trees` with 10 000
//! Installations and 1 000 component versions.
//!
//! The first pass begins with empty caches. Before the second pass, the overwrites are changed, so that they substitute
//! a component in some trees. The registry is in this process and counts requests; the run fails if a request is
//! repeated. The time includes the API server and its etcd on the same machine, with one or two writes for each
//! Installation.
//!
//! `cargo bench --bench reconcile` prints the table; `-- --write` also writes it into `docs/performance.md`.
#![allow(dead_code, unreachable_pub, reason = "shared with tests, which use more of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a benchmark a panic is the report")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report goes there")]

#[path = "../../tests/e2e/assets.rs"]
mod assets;
#[path = "../../tests/e2e/cache.rs"]
mod cache;
#[path = "../../tests/e2e/cleanup.rs"]
mod cleanup;
#[path = "../../tests/e2e/cluster.rs"]
mod cluster;
#[path = "../../tests/e2e/control_plane.rs"]
mod control_plane;
#[path = "../../tests/e2e/controller_manager.rs"]
mod controller_manager;
#[path = "../../tests/e2e/daemon.rs"]
mod daemon;
#[path = "../../tests/support/deadline.rs"]
mod deadline;
#[path = "../../tests/e2e/delivery_crds.rs"]
mod delivery_crds;
#[path = "../../tests/registry/fake.rs"]
mod fake;
#[path = "../../tests/e2e/http.rs"]
mod http;
#[path = "../../tests/e2e/kubectl.rs"]
mod kubectl;
#[path = "../../tests/registry/push.rs"]
mod push;
#[path = "../../tests/registry/scale.rs"]
mod scale;
#[path = "../../tests/e2e/user.rs"]
mod user;

use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::controller_manager::{ControllerManager, Options};
use crate::scale::{INSTALLATIONS_COUNT, ScaleTest};
use crate::user::User;

const PAGE: &str = "docs/performance.md";
const BEGIN: &str = "<!-- reconcile: begin -->";
const END: &str = "<!-- reconcile: end -->";
const NAMESPACE: &str = "ns";
/// The annotation of an Installation into which the controller manager writes a summary of the component tree.
const NOTE: &str = "portcullis.dev/overwrite-tree";
/// Number of objects that are created at the same time. It is high enough that the API server is always busy.
const CONCURRENCY: usize = 16;
/// Number of Installations in one page of a list.
const PAGE_SIZE: u32 = 500;
/// Timeout for one pass over all Installations.
const PASS_TIMEOUT: Duration = Duration::from_mins(30);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    // `cargo test --benches` runs this program without `--bench`. The measurement takes long, so it is skipped then.
    if !has("--bench") {
        return;
    }
    cleanup::clean_up_on_signals().expect("signal handlers can be installed");
    let table = measure();
    println!("{table}");
    if has("--write") {
        let page = std::fs::read_to_string(PAGE).expect("the page exists");
        let (before, rest) = page.split_once(BEGIN).expect("the page has the first marker");
        let (_, after) = rest.split_once(END).expect("the page has the second marker");
        std::fs::write(PAGE, format!("{before}{BEGIN}\n{table}{END}{after}")).expect("the page can be written");
    }
}

/// The results of one pass over all Installations.
struct Pass {
    took: Duration,
    /// Number of requests to the registry since the start of the controller manager.
    requests: usize,
    /// Peak memory of the controller manager since its start, in MiB.
    memory: u64,
    /// Hashes from the annotation [`NOTE`] of each Installation, where they are in the field `from`. A hash identifies
    /// the overwrites and the component reference from which the annotation was computed.
    sources: HashSet<String>,
}

fn measure() -> String {
    let cluster = Cluster::start(|_| {}).unwrap_or_else(|error| panic!("{error}"));
    cluster.apply_crds();
    let scale_test = cluster.block_on(ScaleTest::new());
    let mirror = format!("example.org={}", scale_test.fake.url());
    cluster.block_on(fill(&cluster.client()));
    let arguments = ["--overwrite-trees", "--registry-mirror", &mirror];
    let kubeconfig = cluster.kubeconfig(User::Admin);
    let options = Options {
        kubeconfig,
        lease_namespace: controller_manager::NAMESPACE,
        arguments: &arguments,
        ..Options::new(&cluster, NAMESPACE)
    };
    let begin = Instant::now();
    let manager = options.start(&cluster);
    let run = Run { cluster: &cluster, manager: &manager, scale_test: &scale_test };
    let cold = run.pass(begin, &HashSet::new());
    let begin = Instant::now();
    cluster.block_on(overwrite(&cluster.client(), &scale::example_overwrite()));
    let changed = run.pass(begin, &cold.sources);
    assert_eq!(scale_test.count_requests().0, 1, "a request to the registry was repeated");
    table(&cold, &changed)
}

/// The cluster, the controller manager and the registry of a run.
struct Run<'r> {
    cluster: &'r Cluster,
    manager: &'r ControllerManager,
    scale_test: &'r ScaleTest,
}

impl Run<'_> {
    /// Waits until the controller manager has written a new, complete summary into the annotation [`NOTE`] of every
    /// Installation. A summary is new if its hash (`from`) is not in `before`. Returns the results of this pass, which
    /// started at `begin`.
    fn pass(&self, begin: Instant, before: &HashSet<String>) -> Pass {
        let sources = loop {
            let sources = self.cluster.block_on(sources(&self.cluster.client()));
            let new: Vec<_> = sources.into_iter().filter(|source| !before.contains(source)).collect();
            eprintln!("{} of {INSTALLATIONS_COUNT} after {:.0?}", new.len(), begin.elapsed());
            if new.len() == INSTALLATIONS_COUNT {
                break new.into_iter().collect();
            }
            assert!(begin.elapsed() < PASS_TIMEOUT, "{}", self.manager.log());
            thread::sleep(Duration::from_secs(1));
        };
        let memory = self.manager.peak_memory().unwrap_or_default() / (1 << 20);
        Pass { took: begin.elapsed(), requests: self.scale_test.count_requests().1, memory, sources }
    }
}

fn table(cold: &Pass, changed: &Pass) -> String {
    let mut table = String::from("| 10 000 Installations | all | requests so far | MiB |\n|---|---:|---:|---:|\n");
    for (what, pass) in [("started with nothing known", cold), ("one change of the overwrites", changed)] {
        let Pass { took, requests, memory, .. } = pass;
        table += &format!("| {what} | {:.0} s | {requests} | {memory} |\n", took.as_secs_f64());
    }
    table
}

fn api(client: &Client, kind: &str, plural: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("landscaper.gardener.cloud", "v1alpha1", kind);
    Api::namespaced_with(client.clone(), NAMESPACE, &ApiResource::from_gvk_with_plural(&kind, plural))
}

/// Creates the namespaces, the Context, the overwrites and the Installations.
async fn fill(client: &Client) {
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
    for name in [NAMESPACE, controller_manager::NAMESPACE] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        namespaces.create(&PostParams::default(), &serde_json::from_value(namespace).unwrap()).await.unwrap();
    }
    let store = async |object: Value| {
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let kind = object.types.as_ref().unwrap().kind.clone();
        let plural = match kind.as_str() {
            "ComponentVersionOverwrites" => "componentversionoverwrites".to_owned(),
            other => format!("{}s", other.to_lowercase()),
        };
        api(client, &kind, &plural).create(&PostParams::default(), &object).await.unwrap();
    };
    let begin = Instant::now();
    let objects = scale::objects("example.org", &first_entries());
    futures::stream::iter(objects).map(store).buffer_unordered(CONCURRENCY).collect::<Vec<_>>().await;
    eprintln!("{INSTALLATIONS_COUNT} Installations stored after {:.0?}", begin.elapsed());
}

/// Returns the entries of the ComponentVersionOverwrites object for the first of the two measured passes. They replace
/// the component `leaf-5`, which many component trees contain.
fn first_entries() -> Value {
    json!([{"source": {"componentName": "example.org/leaf-5"}, "substitution": {"componentName": "example.org/leaf-11"}}])
}

async fn overwrite(client: &Client, entries: &Value) {
    let patch = Patch::Merge(json!({"overwrites": entries}));
    let all = api(client, "ComponentVersionOverwrites", "componentversionoverwrites");
    all.patch("mine", &PatchParams::default(), &patch).await.unwrap();
}

/// Returns the field `from` of the summary in the annotation [`NOTE`], for each Installation whose summary is complete.
async fn sources(client: &Client) -> Vec<String> {
    let all = api(client, "Installation", "installations");
    let (mut sources, mut page) = (Vec::new(), ListParams::default().limit(PAGE_SIZE));
    loop {
        let listed = all.list(&page).await.unwrap();
        sources.extend(listed.items.iter().filter_map(source));
        match listed.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page.continue_token = Some(token),
            None => return sources,
        }
    }
}

fn source(installation: &DynamicObject) -> Option<String> {
    let note = installation.metadata.annotations.as_ref()?.get(NOTE)?;
    let note: Value = serde_json::from_str(note).unwrap();
    (note["complete"] == true).then(|| note["from"].as_str().unwrap().to_owned())
}
